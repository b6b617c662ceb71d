"""β-TC-VAE (Chen et al. 2018): AEVB with the total correlation of the aggregate posterior multiplied by β."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wiseale.config import setting
from wiseale.divergences import kl_posterior_prior, log_aggregate, log_aggregate_marginals
from wiseale.objectives.terms import Batch, Objective, Terms
from wiseale.priors import StandardNormal


@dataclass(frozen=True)
class BetaTcVae(Objective):
    """mean_i(−log p(x_i|z_i)) + MI + β·TC + dimension-wise KL: the paper's objective with its α = γ = 1.

    MI is the mutual information I(x; z) and TC the total correlation. At β = 1 the three terms sum to the mean AEVB KL
    (the paper's eq. 2), which has a closed form, so the prior term is KL + (β − 1)·TC.
    TC = E[log q(z) − Σ_k log q(z_k)] is estimated at the given z, with the batch's aggregate posterior as q. The
    paper's minibatch-weighted sampling subtracts the constant log N from each log q, which does not change the
    gradient; without it MI (at most log M) and TC are those of the batch. The authors' second estimator, stratified
    sampling (their option --mss, off by default), weights a row's own posterior by 1/N instead of 1/M; it is not
    offered here.
    """

    beta: float = setting(6.0, "weight of the total correlation (6: the paper's choice for dSprites)", above=0)

    title: ClassVar[str] = "β-TC-VAE"
    couples_batch: ClassVar[bool] = True

    def __call__(self, batch: Batch) -> Terms:
        """The terms for a batch; MI, TC and the dimension-wise KL, estimated at the given z, are the details."""
        posterior, z = batch.posterior, batch.z
        kl = kl_posterior_prior(posterior).mean()
        joint, product = log_aggregate(posterior, z), log_aggregate_marginals(posterior, z).sum(-1)
        total_correlation = (joint - product).mean()
        details = {
            "mutual_information": (posterior.log_prob(z) - joint).mean(),
            "total_correlation": total_correlation,
            "dimension_wise_kl": (product - StandardNormal(z.shape[1]).log_prob(z)).mean(),
        }
        return Terms(batch.reconstruction, kl + (self.beta - 1) * total_correlation, 1.0, details)
