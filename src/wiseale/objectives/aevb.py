"""AEVB, the variational auto-encoder (Kingma & Welling 2014), and β-VAE (Higgins et al. 2017): a KL per observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from wiseale.config import setting
from wiseale.divergences import kl_posterior_prior
from wiseale.objectives.terms import Batch, Objective, Terms, weight_value


@dataclass(frozen=True)
class Aevb(Objective):
    """−ELBO = mean_i(−log p(x_i|z_i)) + mean_i D_KL[q(z|x_i) ‖ p(z)], the KL in closed form."""

    title: ClassVar[str] = "AEVB"

    def __call__(self, batch: Batch) -> Terms:
        """The terms for a batch."""
        return Terms(batch.reconstruction, kl_posterior_prior(batch.posterior).mean(), 1.0)


@dataclass(frozen=True)
class BetaVae(Objective):
    """mean_i(−log p(x_i|z_i)) + β · mean_i D_KL[q(z|x_i) ‖ p(z)].

    β = ``"1/M"`` is the control for WiSE-ALE with the paper's weight 1/M: where posteriors do not overlap, both
    objectives have the same gradient.
    """

    beta: float | Literal["1/M", "1/N"] = setting(4.0, "weight of the KL", above=0)

    title: ClassVar[str] = "β-VAE"
    weight_setting: ClassVar[str | None] = "beta"

    def __call__(self, batch: Batch) -> Terms:
        """The terms for a batch."""
        prior = kl_posterior_prior(batch.posterior).mean()
        return Terms(batch.reconstruction, prior, weight_value(self.beta, len(batch.posterior)))
