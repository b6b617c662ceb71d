"""WiSE-ALE (Lin et al. 2019): the prior constrains the average of the posteriors, not each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor, nn

from wiseale.config import SettingError, setting
from wiseale.divergences import kl_aggregate_mc, kl_aggregate_upper_bound
from wiseale.errors import ConfigError
from wiseale.likelihoods import Likelihood
from wiseale.objectives.posterior_bank import PosteriorBank, refuse_small_bank
from wiseale.objectives.shared_bound import shared_rows
from wiseale.objectives.terms import ObjectiveCall, Terms, WeightedObjective, weight_value
from wiseale.posterior import Posterior
from wiseale.spaces import Space

Estimator = Literal["jensen", "bhattacharyya", "tightest", "mc"]


@dataclass(frozen=True)
class WiseAle(WeightedObjective):
    """mean_i(−log p(x_i|z_i)) + weight · D_KL[q(z|B_M) ‖ p(z)], the KL bounded as in eq:KL-UB or estimated.

    q(z|B_M) = (1/M) Σ_i q(z|x_i) is the aggregate posterior of the batch. The paper's L(B_M), divided by M, has the
    weight 1/M (``"paper"``), at which the prior hardly acts. The default is 1; ``docs/deviations.md`` says why.

    ``aggregate="bank"`` (ours) averages over the last ``bank_size`` posteriors instead of the batch's M: the paper's
    derivation is for the whole dataset. The objective then no longer depends on M. It is an experiment: on sine waves a
    bank of 1,024 collapsed in one seed of three, and larger ones were worse on MNIST (``docs/frontier.md``).

    >>> from wiseale.likelihoods import Gaussian
    >>> q = Posterior(mu=torch.tensor([[-1.0], [1.0]]), sigma=torch.ones(2, 1))
    >>> x = torch.zeros(2, 3)
    >>> WiseAle()(x, q, q.mu, Gaussian(x, 1.0)).prior
    tensor(0.2735)
    """

    estimator: Estimator = setting(
        "jensen", "bound (jensen is the paper's) or Monte Carlo estimate of the aggregate KL"
    )
    prior_weight: float | Literal["paper", "1/M", "1/N"] = setting(1.0, "weight of the aggregate KL", above=0)
    aggregate: Literal["batch", "bank"] = setting("batch", "posteriors averaged: the batch's, or the last bank_size")
    bank_size: int = setting(1024, "posteriors kept where aggregate is bank", minimum=2)

    title: ClassVar[str] = "WiSE-ALE"
    couples_batch: ClassVar[bool] = True
    weight_setting: ClassVar[str | None] = "prior_weight"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.aggregate == "bank" and self.prior_weight in ("paper", "1/M"):
            problem = f"{self.prior_weight!r} has no meaning for a bank, which does not depend on M: give a number"
            raise SettingError("prior_weight", problem)

    def at_scale(self, batch_size: int, n_samples: int) -> Self:
        """The same objective with its weight as a number; refuses a bank smaller than the batch."""
        if self.aggregate == "bank":
            refuse_small_bank(self.bank_size, batch_size)
        return super().at_scale(batch_size, n_samples)

    def build(self, space: Space, latent_dim: int) -> ObjectiveCall:
        """This objective itself, or a module that holds the posterior bank."""
        return BankedWiseAle(self, latent_dim) if self.aggregate == "bank" else self

    def __call__(
        self,
        x: Tensor,
        posterior: Posterior,
        z: Tensor,
        likelihood: Likelihood,
        *,
        generator: torch.Generator | None = None,
    ) -> Terms:
        """The terms for a batch; the ``mc`` estimate uses the given z, without further draws."""
        if self.aggregate == "bank":
            raise ConfigError(
                "wise_ale:aggregate=bank remembers posteriors: call what build(x_shape, latent_dim) returns"
            )
        prior = aggregate_kl(posterior, z, self.estimator)
        return Terms(-likelihood.log_prob(x), prior, weight_value(self.prior_weight, len(posterior)))


class BankedWiseAle(nn.Module):
    """WiSE-ALE with a posterior bank instead of the batch."""

    couples_batch: ClassVar[bool] = True

    def __init__(self, settings: WiseAle, latent_dim: int) -> None:
        super().__init__()
        self.settings = settings
        self.bank = PosteriorBank(settings.bank_size, latent_dim, settings.estimator)

    def forward(
        self,
        x: Tensor,
        posterior: Posterior,
        z: Tensor,
        likelihood: Likelihood,
        *,
        generator: torch.Generator | None = None,
    ) -> Terms:
        """The terms for a batch; in training mode the bank stores its posteriors."""
        weight = weight_value(self.settings.prior_weight, len(posterior))
        return Terms(-likelihood.log_prob(x), self.bank(posterior, z), weight)


def aggregate_kl(posterior: Posterior, z: Tensor, estimator: Estimator) -> Tensor:
    """The batch's aggregate KL, nats, (): an analytic upper bound or, for ``mc``, an estimate at z ~ q."""
    if estimator == "mc":
        return kl_aggregate_mc(posterior, z=z)
    return kl_aggregate_upper_bound(posterior, estimator, shared_rows(posterior))
