"""WiSE-ALE (Lin et al. 2019): the prior constrains the average of the posteriors, not each of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from wiseale.config import setting
from wiseale.divergences import kl_aggregate_mc, kl_aggregate_upper_bound, kl_posterior_prior
from wiseale.objectives.terms import Batch, Objective, Terms, weight_value

Estimator = Literal["jensen", "bhattacharyya", "tightest", "mc"]


@dataclass(frozen=True)
class WiseAle(Objective):
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
        return Terms(batch.reconstruction, aggregate_kl(batch, self.estimator), weight)


@dataclass(frozen=True)
class WiseAleExact(WiseAle):
    """With the exact reconstruction term (the paper's future work) instead of the approximation: a lower bound.

    mean_i(−(1/M) Σ_j log p(x_j|z_i)) + weight · D_KL[q(z|B_M) ‖ p(z)], eq:reconstruction-likelihood-no-bound. At its
    optimum the decoder ignores z and returns the data mean, and the aggregate posterior equals the prior;
    ``docs/exact_bound.md`` derives this and shows trained runs.

    With the weight 1/M, −M·loss is (in expectation) at most log p(B_M) = log ∫ p(z) Π_j p(x_j|z) dz, the likelihood of
    the paper's model, in which a whole batch shares one z. It does not bound log p(x_i), so it cannot be compared with
    AEVB's ELBO.

    ``reconstruction="mixture"`` is −log (1/M) Σ_j p(x_j|z_i), between the exact term and the paper's approximation:
    each code has to explain any one observation of the batch. It is not a bound.
    """

    prior_weight: float | Literal["paper", "1/M", "1/N"] = setting("paper", "weight of the aggregate KL", above=0)
    reconstruction: Literal["shared", "mixture"] = setting(
        "shared", "every code explains every observation (a lower bound), or any one of them"
    )

    title: ClassVar[str] = "WiSE-ALE, exact reconstruction"
    needs_whole_batch: ClassVar[bool] = True  # a code has to explain the observations of all processes

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


def aggregate_kl(batch: Batch, estimator: Estimator) -> Tensor:
    """The batch's aggregate KL, nats, (): an upper bound or, for ``mc``, an estimate at the codes of the batch."""
    if estimator == "mc":
        return kl_aggregate_mc(batch.posterior, z=batch.z)
    return kl_aggregate_upper_bound(batch.posterior, estimator)
