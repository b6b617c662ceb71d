"""WiSE-ALE (Lin et al. 2019): the prior constrains the average of the batch's posteriors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from wiseale.config import setting
from wiseale.divergences import kl_aggregate_mc, kl_aggregate_upper_bound
from wiseale.likelihoods import Likelihood
from wiseale.objectives.terms import Terms, WeightedObjective, weight_value
from wiseale.posterior import Posterior


@dataclass(frozen=True)
class WiseAle(WeightedObjective):
    """mean_i(−log p(x_i|z_i)) + weight · D_KL[q(z|B_M) ‖ p(z)], the KL bounded as in eq:KL-UB or estimated.

    The paper's L(B_M), divided by M, has the weight 1/M (``"paper"``): there the prior all but vanishes. The default
    is 1; ``docs/deviations.md`` says why.
    """

    estimator: Literal["jensen", "bhattacharyya", "tightest", "mc"] = setting(
        "jensen", "bound (jensen is the paper's) or Monte Carlo estimate of the aggregate KL"
    )
    prior_weight: float | Literal["paper", "1/M", "1/N"] = setting(1.0, "weight of the aggregate KL", above=0)

    couples_batch: ClassVar[bool] = True
    weight_setting: ClassVar[str | None] = "prior_weight"

    def __call__(
        self,
        x: Tensor,
        posterior: Posterior,
        z: Tensor,
        likelihood: Likelihood,
        *,
        generator: torch.Generator | None = None,
    ) -> Terms:
        """The terms for a batch; ``mc`` is taken at the given z, so it needs no further draw."""
        if self.estimator == "mc":
            prior = kl_aggregate_mc(posterior, z=z)
        else:
            prior = kl_aggregate_upper_bound(posterior, self.estimator)
        return Terms(-likelihood.log_prob(x), prior, weight_value(self.prior_weight, len(posterior)))
