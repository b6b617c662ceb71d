"""p(x|z): what a decoder returns; one file per family, and ``table`` for columns of different kinds."""

from wiseale.likelihoods.bernoulli import Bernoulli, BernoulliFamily
from wiseale.likelihoods.family import (
    Likelihood,
    LikelihoodFamily,
    cell_errors,
    check_support,
    mean_error,
)
from wiseale.likelihoods.gaussian import Gaussian, GaussianFamily, LearnedNoise
from wiseale.likelihoods.table import LearnedTable, Table, TableFamily

__all__ = [
    "Bernoulli",
    "BernoulliFamily",
    "Gaussian",
    "GaussianFamily",
    "LearnedNoise",
    "LearnedTable",
    "Likelihood",
    "LikelihoodFamily",
    "Table",
    "TableFamily",
    "cell_errors",
    "check_support",
    "mean_error",
]
