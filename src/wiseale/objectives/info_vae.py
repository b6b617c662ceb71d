"""InfoVAE (Zhao et al. 2019): AEVB with a weaker KL, and an MMD between the batch's codes and the prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wiseale.config import SettingError, setting
from wiseale.divergences import kl_posterior_prior
from wiseale.divergences.samples import squared_mmd
from wiseale.objectives.terms import Batch, Objective, Terms


@dataclass(frozen=True)
class InfoVae(Objective):
    """mean_i(−log p(x_i|z_i)) + (1 − α)·mean_i KL_i + (α + λ − 1)·MMD²(codes, draws from the prior).

    α = 0, λ = 1 is AEVB; α = 1 is the paper's MMD-VAE, which equals WAE-MMD with a Gaussian encoder and weight λ. The
    kernel is WAE-MMD's, so that the systems differ only in their objective (the authors' code uses a Gaussian kernel).
    The defaults, between the two limits, are ours.
    """

    alpha: float = setting(0.5, "α: how much of AEVB's KL is given up, 0 to 1", minimum=0)
    lambda_mmd: float = setting(100.0, "λ: the squared MMD has the weight α + λ − 1", above=0)

    title: ClassVar[str] = "InfoVAE"
    couples_batch: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha > 1:
            raise SettingError("alpha", f"must be at most 1, got {self.alpha}")
        if self.alpha + self.lambda_mmd < 1:
            raise SettingError("lambda_mmd", f"must be at least 1 − alpha = {1 - self.alpha:g}, got {self.lambda_mmd}")

    def __call__(self, batch: Batch) -> Terms:
        """The terms for a batch; the prior is sampled as often as there are codes."""
        kl = kl_posterior_prior(batch.posterior).mean()
        mmd = squared_mmd(batch.z, batch.draw_prior())
        prior = (1 - self.alpha) * kl + (self.alpha + self.lambda_mmd - 1) * mmd
        return Terms(batch.reconstruction, prior, 1.0, {"squared_mmd": mmd})
