"""AEVB, the variational auto-encoder (Kingma & Welling 2014): the prior constrains every single posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from wiseale.divergences import kl_posterior_prior
from wiseale.likelihoods import Likelihood
from wiseale.objectives.terms import Terms, WeightedObjective
from wiseale.posterior import Posterior


@dataclass(frozen=True)
class Aevb(WeightedObjective):
    """−ELBO = mean_i(−log p(x_i|z_i)) + mean_i D_KL[q(z|x_i) ‖ p(z)], the KL in closed form."""

    title: ClassVar[str] = "AEVB"

    def __call__(
        self,
        x: Tensor,
        posterior: Posterior,
        z: Tensor,
        likelihood: Likelihood,
        *,
        generator: torch.Generator | None = None,
    ) -> Terms:
        """The terms for a batch."""
        return Terms(-likelihood.log_prob(x), kl_posterior_prior(posterior).mean(), 1.0)
