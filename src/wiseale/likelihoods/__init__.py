"""p(x|z): what a decoder returns; one file per likelihood, and ``table`` for columns of different kinds."""

from wiseale.likelihoods.bernoulli import Bernoulli, BernoulliSettings
from wiseale.likelihoods.gaussian import Gaussian, GaussianSettings
from wiseale.likelihoods.likelihood import Likelihood, LikelihoodSettings, OutputLayer, mean_error
from wiseale.likelihoods.mixed import Mixed, MixedOutput, TableSettings

__all__ = [
    "Bernoulli",
    "BernoulliSettings",
    "Gaussian",
    "GaussianSettings",
    "Likelihood",
    "LikelihoodSettings",
    "Mixed",
    "MixedOutput",
    "OutputLayer",
    "TableSettings",
    "mean_error",
]
