"""What an objective gets and returns, and the interface between objectives and the training loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Protocol, Self, runtime_checkable

import torch
from torch import Tensor, nn

from wiseale.config import Settings
from wiseale.errors import ConfigError
from wiseale.likelihoods import Likelihood
from wiseale.posterior import Posterior
from wiseale.priors import StandardNormal
from wiseale.spaces import Space

Weight = float | Literal["paper", "1/M", "1/N"]


@dataclass(frozen=True)
class Batch:
    """M observations x, ``(M, *x_shape)``, their posteriors, a code z (M, d_z) drawn from each, and p(x|z) there.

    ``generator`` is the source of every further random draw. Where processes share a batch, x and likelihood are this
    process's rows and posterior and z those of all (see ``ObjectiveCall``).
    """

    x: Tensor
    posterior: Posterior
    z: Tensor
    likelihood: Likelihood
    generator: torch.Generator | None = None

    @property
    def reconstruction(self) -> Tensor:
        """−log p(x_i|z_i), (M,), nats."""
        return -self.likelihood.log_prob(self.x)

    def draw_prior(self) -> Tensor:
        """As many draws from N(0, I) as there are codes, (M, d_z)."""
        return StandardNormal(self.z.shape[1]).sample(len(self.z), self.generator).to(self.z)


@dataclass(frozen=True)
class Terms:
    """The terms of a loss, kept apart, in nats per observation: −log p(x_i|z_i), (M,), and the prior term, ().

    ``details`` are further terms by name, logged but not added to the loss. ``elbo`` is the evidence lower bound, mean
    over observations, (); None: it follows from the reconstruction and the KL between each posterior and N(0, I).
    """

    reconstruction: Tensor
    prior: Tensor
    weight: float
    details: Mapping[str, Tensor] = field(default_factory=dict)
    elbo: Tensor | None = None

    @property
    def loss(self) -> Tensor:
        """mean_i(reconstruction_i) + weight · prior, ()."""
        return self.loss_at(1.0)

    def loss_at(self, warmup: float) -> Tensor:
        """The loss with the prior's weight scaled by a warm-up factor in [0, 1], ()."""
        return self.reconstruction.mean() + (warmup * self.weight) * self.prior


class ObjectiveCall(Protocol):
    """The callable that the training loop applies to each batch.

    On one process the batch is whole. Where processes share it, an objective that couples the batch gets the posteriors
    and codes of all rows, with the x and likelihood of this process's rows: its prior must depend on the former only,
    its reconstruction on the latter. One with ``needs_whole_batch`` gets all rows of all four. Any other gets this
    process's rows. Losses are averaged over processes.
    """

    couples_batch: ClassVar[bool]
    needs_whole_batch: ClassVar[bool]

    def __call__(self, batch: Batch) -> Terms:
        """The terms for a batch; every random draw uses its generator."""
        ...


@runtime_checkable
class Adversarial(Protocol):
    """An objective with a critic: it adds a critic step, and possibly an encoder step, after each auto-encoder step."""

    critic_lr: float
    encoder_lr: float | None
    """Learning rate of the encoder's step after the critic's; None if there is no such step."""

    def critic_parameters(self) -> Iterable[nn.Parameter]:
        """The parameters of the second optimiser; the first does not change them."""

    def critic_loss(self, z: Tensor, generator: torch.Generator) -> Tensor:
        """The loss of the critic for codes (M, d_z) without gradient, ()."""

    def encoder_loss(self, z: Tensor, generator: torch.Generator) -> Tensor:
        """The loss of the encoder's own step for codes (M, d_z) with gradient, ()."""


@dataclass(frozen=True)
class Objective(Settings):
    """Base of the compared systems: a system's hyper-parameters, which called on a :class:`Batch` return its terms."""

    title: ClassVar[str] = ""
    """The name in the literature, for reports; empty: the registered name."""

    couples_batch: ClassVar[bool] = False
    """Whether the loss of one observation depends on the others (processes must then share their posteriors)."""

    needs_whole_batch: ClassVar[bool] = False

    own_prior: ClassVar[bool] = False
    """Whether the prior over codes is learned instead of N(0, I): ``build`` then returns an ``OwnPrior`` module."""

    weight_setting: ClassVar[str | None] = None
    """Name of the field that holds the prior's weight; None: the weight is 1."""

    @property
    def stochastic(self) -> bool:
        """Whether the encoder is stochastic: it is, unless the objective has the setting ``encoder`` to say so."""
        return getattr(self, "encoder", "gaussian") == "gaussian"

    def build(self, space: Space, latent_dim: int) -> ObjectiveCall:
        """The callable for the loop: itself, or an ``nn.Module`` with this objective's networks or critic."""
        return self  # type: ignore[return-value]

    def effective_weight(self, batch_size: int, n_samples: int) -> float:
        """The number the prior is multiplied by in a run with these sizes."""
        weight = getattr(self, self.weight_setting) if self.weight_setting else 1.0
        return weight_value(weight, batch_size, n_samples)

    def at_scale(self, batch_size: int, n_samples: int) -> Self:
        """This objective with a symbolic weight (``"1/M"``, ``"1/N"``) replaced by its number."""
        if not self.weight_setting:
            return self
        return replace(self, **{self.weight_setting: self.effective_weight(batch_size, n_samples)})


def weight_value(weight: Weight, batch_size: int, n_samples: int | None = None) -> float:
    """The number a weight stands for: ``"paper"`` and ``"1/M"`` are 1/batch_size, ``"1/N"`` is 1/n_samples."""
    if not isinstance(weight, str):
        return weight
    if weight == "1/N":
        if n_samples is None:
            raise ConfigError("the weight '1/N' needs the number of training samples: give the number itself")
        return 1 / n_samples
    return 1 / batch_size
