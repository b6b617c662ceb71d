"""DIP-VAE (Kumar et al. 2018): AEVB with a penalty that pulls the covariance of the codes to the identity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from wiseale.config import setting
from wiseale.divergences import kl_posterior_prior
from wiseale.objectives.terms import Batch, Objective, Terms


@dataclass(frozen=True)
class DipVae(Objective):
    """mean_i(−log p(x_i|z_i)) + mean_i KL_i + λ_od Σ_{k≠l} Cov_kl² + λ_d Σ_k (Cov_kk − 1)².

    Cov is the covariance over the batch of the posterior means (DIP-VAE-I, the paper's eq. 6), or of the aggregate
    posterior, Cov(mu) + diag(mean σ²) (DIP-VAE-II, eq. 7). ``lambda_d=none`` stands for the paper's 10·λ_od (I) or λ_od
    (II). The default λ_od is one of those the paper tries.
    """

    kind: Literal["i", "ii"] = setting("i", "covariance of the means (i) or of the aggregate posterior (ii)")
    lambda_od: float = setting(10.0, "weight of the entries off the diagonal", minimum=0)
    lambda_d: float | None = setting(
        None, "weight of the diagonal (none: 10·lambda_od for i, lambda_od for ii)", minimum=0
    )

    title: ClassVar[str] = "DIP-VAE"
    couples_batch: ClassVar[bool] = True

    def __call__(self, batch: Batch) -> Terms:
        """The terms for a batch."""
        posterior = batch.posterior
        centred = posterior.mu - posterior.mu.mean(0)
        covariance = centred.T @ centred / len(posterior)
        variance = covariance.diagonal()
        off_diagonal = covariance - variance.diag()
        if self.kind == "ii":
            variance = variance + posterior.scale.square().mean(0)
        ratio = 10 if self.kind == "i" else 1
        lambda_d = ratio * self.lambda_od if self.lambda_d is None else self.lambda_d
        penalty = self.lambda_od * off_diagonal.square().sum() + lambda_d * (variance - 1).square().sum()
        kl = kl_posterior_prior(posterior).mean()
        return Terms(batch.reconstruction, kl + penalty, 1.0, {"covariance_penalty": penalty})
