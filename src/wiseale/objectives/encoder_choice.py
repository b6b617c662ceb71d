"""Objectives whose encoder may be Gaussian or deterministic, and those that compare codes with draws of the prior."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor

from wiseale.likelihoods import Likelihood
from wiseale.objectives.terms import Terms, WeightedObjective
from wiseale.posterior import Posterior
from wiseale.priors import StandardNormal


class EncoderChoice(WeightedObjective):
    """Base of objectives with the setting ``encoder``: z ~ N(mu, sigma²) if "gaussian", z = mu if "deterministic"."""

    encoder: Literal["gaussian", "deterministic"]  # declared as a setting, with its default, by each objective

    @property
    def stochastic(self) -> bool:
        """Whether the encoder is stochastic; otherwise z = mu."""
        return self.encoder == "gaussian"


class SampleDistance(EncoderChoice):
    """mean_i(−log p(x_i|z_i)) + prior_weight · distance(codes, as many draws from the prior)."""

    prior_weight: float  # declared as a setting by each objective

    couples_batch: ClassVar[bool] = True
    weight_setting: ClassVar[str | None] = "prior_weight"

    def distance(self, z: Tensor, z_prior: Tensor) -> Tensor:
        """Distance of codes (M, d_z) from draws of the prior (M, d_z), ()."""
        raise NotImplementedError

    def __call__(
        self,
        x: Tensor,
        posterior: Posterior,
        z: Tensor,
        likelihood: Likelihood,
        *,
        generator: torch.Generator | None = None,
    ) -> Terms:
        """The terms for a batch; the prior is sampled as often as there are codes."""
        z_prior = StandardNormal(z.shape[1]).sample(len(z), generator).to(z)
        return Terms(-likelihood.log_prob(x), self.distance(z, z_prior), self.prior_weight)
