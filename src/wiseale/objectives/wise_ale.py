"""WiSE-ALE (Lin et al. 2019): the prior constrains the average of the posteriors, not each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from wiseale.config import setting
from wiseale.divergences import kl_aggregate_mc, kl_aggregate_upper_bound
from wiseale.objectives.terms import Batch, Terms, WeightedObjective, weight_value

Estimator = Literal["jensen", "bhattacharyya", "tightest", "mc"]


@dataclass(frozen=True)
class WiseAle(WeightedObjective):
    """mean_i(−log p(x_i|z_i)) + weight · D_KL[q(z|B_M) ‖ p(z)], the KL bounded as in eq:KL-UB or estimated.

    q(z|B_M) = (1/M) Σ_i q(z|x_i) is the aggregate posterior of the batch; :mod:`wiseale.method` derives the bound. The
    paper's L(B_M), divided by M, has the weight 1/M (``"paper"``), at which the prior hardly acts. The default is 1;
    ``docs/deviations.md`` says why.

    >>> import torch
    >>> from wiseale.likelihoods import Gaussian
    >>> from wiseale.posterior import Posterior
    >>> q = Posterior(mu=torch.tensor([[-1.0], [1.0]]), sigma=torch.ones(2, 1))
    >>> x = torch.zeros(2, 3)
    >>> WiseAle()(Batch(x, q, q.mu, Gaussian(x, 1.0))).prior
    tensor(0.2735)
    """

    estimator: Estimator = setting(
        "jensen", "bound (jensen is the paper's) or Monte Carlo estimate of the aggregate KL"
    )
    prior_weight: float | Literal["paper", "1/M", "1/N"] = setting(1.0, "weight of the aggregate KL", above=0)

    title: ClassVar[str] = "WiSE-ALE"
    couples_batch: ClassVar[bool] = True
    weight_setting: ClassVar[str | None] = "prior_weight"

    def __call__(self, batch: Batch) -> Terms:
        """The terms for a batch."""
        weight = weight_value(self.prior_weight, len(batch.posterior))
        return Terms(-batch.likelihood.log_prob(batch.x), aggregate_kl(batch, self.estimator), weight)


def aggregate_kl(batch: Batch, estimator: Estimator) -> Tensor:
    """The batch's aggregate KL, nats, (): an upper bound or, for ``mc``, an estimate at the codes of the batch."""
    if estimator == "mc":
        return kl_aggregate_mc(batch.posterior, z=batch.z)
    return kl_aggregate_upper_bound(batch.posterior, estimator)
