"""β-VAE (Higgins et al. 2017): AEVB with the per-observation KL multiplied by β."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from wiseale.config import setting
from wiseale.divergences import kl_posterior_prior
from wiseale.likelihoods import Likelihood
from wiseale.objectives.terms import Terms, WeightedObjective, weight_value
from wiseale.posterior import Posterior


@dataclass(frozen=True)
class BetaVae(WeightedObjective):
    """mean_i(−log p(x_i|z_i)) + β · mean_i D_KL[q(z|x_i) ‖ p(z)].

    β = ``"1/M"`` is the control for WiSE-ALE with the paper's weight 1/M: where posteriors do not overlap, both
    objectives have the same gradient.
    """

    beta: float | Literal["1/M", "1/N"] = setting(4.0, "weight of the KL", above=0)

    title: ClassVar[str] = "β-VAE"
    weight_setting: ClassVar[str | None] = "beta"

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
        prior = kl_posterior_prior(posterior).mean()
        return Terms(-likelihood.log_prob(x), prior, weight_value(self.beta, len(posterior)))
