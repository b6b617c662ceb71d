"""AEVB, the variational auto-encoder (Kingma & Welling 2014): the prior constrains every single posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wiseale.divergences import kl_posterior_prior
from wiseale.objectives.terms import Batch, Terms, WeightedObjective


@dataclass(frozen=True)
class Aevb(WeightedObjective):
    """−ELBO = mean_i(−log p(x_i|z_i)) + mean_i D_KL[q(z|x_i) ‖ p(z)], the KL in closed form."""

    title: ClassVar[str] = "AEVB"

    def __call__(self, batch: Batch) -> Terms:
        """The terms for a batch."""
        return Terms(-batch.likelihood.log_prob(batch.x), kl_posterior_prior(batch.posterior).mean(), 1.0)
