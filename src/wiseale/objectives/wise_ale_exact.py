"""WiSE-ALE with the exact reconstruction term (the paper's future work) instead of the approximation: a lower bound.

At its optimum the decoder ignores z and returns the data mean, and the aggregate posterior equals the prior;
``docs/exact_bound.md`` derives this and shows trained runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from wiseale.config import setting
from wiseale.divergences import kl_posterior_prior
from wiseale.objectives.terms import Batch, Terms, WeightedObjective, weight_value
from wiseale.objectives.wise_ale import Estimator, aggregate_kl


@dataclass(frozen=True)
class WiseAleExact(WeightedObjective):
    """mean_i(−(1/M) Σ_j log p(x_j|z_i)) + weight · D_KL[q(z|B_M) ‖ p(z)], eq:reconstruction-likelihood-no-bound.

    With the weight 1/M, −M·loss is (in expectation) at most log p(B_M) = log ∫ p(z) Π_j p(x_j|z) dz, the likelihood of
    the paper's model, in which a whole batch shares one z. It does not bound log p(x_i), so it cannot be compared with
    AEVB's ELBO.

    ``reconstruction="mixture"`` is −log (1/M) Σ_j p(x_j|z_i), between the exact term and the paper's approximation:
    each code has to explain any one observation of the batch. It is not a bound.
    """

    estimator: Estimator = setting(
        "jensen", "bound (jensen is the paper's) or Monte Carlo estimate of the aggregate KL"
    )
    prior_weight: float | Literal["paper", "1/M", "1/N"] = setting("paper", "weight of the aggregate KL", above=0)
    reconstruction: Literal["shared", "mixture"] = setting(
        "shared", "every code explains every observation (a lower bound), or any one of them"
    )

    title: ClassVar[str] = "WiSE-ALE, exact reconstruction"
    couples_batch: ClassVar[bool] = True
    needs_whole_batch: ClassVar[bool] = True  # a code has to explain the observations of all processes
    weight_setting: ClassVar[str | None] = "prior_weight"

    def __call__(self, batch: Batch) -> Terms:
        """The terms for a batch; the ``mc`` estimate uses its codes, without further draws."""
        if self.reconstruction == "mixture":
            log_prob = batch.likelihood.pairwise_log_prob(batch.x).logsumexp(1) - math.log(len(batch.x))
        else:
            log_prob = batch.likelihood.average_log_prob(batch.x)
        with torch.no_grad():
            # From each observation's own code, as AEVB reports them: logged for comparison, not part of the loss.
            own = batch.likelihood.log_prob(batch.x).mean()
            elbo = own - kl_posterior_prior(batch.posterior).mean()
        weight = weight_value(self.prior_weight, len(batch.posterior))
        return Terms(-log_prob, aggregate_kl(batch, self.estimator), weight, {"own_reconstruction": -own}, elbo)
