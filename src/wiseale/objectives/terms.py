"""What every objective returns, and what the training loop may ask of one."""

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

Weight = float | Literal["paper", "1/M", "1/N"]


@dataclass(frozen=True)
class Terms:
    """The parts of a loss, kept apart: nats per observation.

    Attributes:
        reconstruction: −log p(x_i|z_i), (M,).
        prior: the divergence of this objective from the prior, ().
        weight: what the prior is multiplied by.
        details: further terms by name, logged and never added to the loss.
        elbo: the evidence lower bound of the batch, mean over observations, (); None: it follows from the
            reconstruction and the KL between each posterior and N(0, I).
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
    """What the loop calls on each batch.

    Where several ranks share a batch, one that couples it is given everyone's posteriors and codes, with this rank's x
    and likelihood: the prior is to follow from the former alone, the reconstruction from the latter. The others are
    given this rank's part. Losses are averaged over ranks.
    """

    couples_batch: ClassVar[bool]

    def __call__(
        self,
        x: Tensor,
        posterior: Posterior,
        z: Tensor,
        likelihood: Likelihood,
        *,
        generator: torch.Generator | None = None,
    ) -> Terms:
        """The terms for a batch; every random draw uses the generator."""
        ...


@runtime_checkable
class Adversarial(Protocol):
    """What an objective with a critic offers the loop besides its call: further steps after each auto-encoder step."""

    critic_lr: float
    encoder_lr: float | None
    """Learning rate of the encoder's own step after the critic's; None: there is no such step."""

    def critic_parameters(self) -> Iterable[nn.Parameter]:
        """What the second optimiser changes; the first leaves these alone."""
        ...

    def critic_loss(self, z: Tensor, generator: torch.Generator) -> Tensor:
        """What the critic minimises, given codes (M, d_z) outside the graph, ()."""
        ...

    def encoder_loss(self, z: Tensor, generator: torch.Generator) -> Tensor:
        """What the encoder minimises in its own step, given codes (M, d_z) in the graph, ()."""
        ...


class Objective(Protocol):
    """A frozen dataclass of hyper-parameters that is one of the systems."""

    couples_batch: ClassVar[bool]
    """Whether the loss of one observation depends on the others (ranks must then share their posteriors)."""

    own_prior: ClassVar[bool]
    """Whether the prior over codes is learned instead of N(0, I): ``build`` then returns an ``OwnPrior`` module."""

    @property
    def stochastic(self) -> bool:
        """Whether the encoder is stochastic; a deterministic one has no sigma and z = mu."""
        ...

    def build(self, x_shape: tuple[int, ...], latent_dim: int) -> ObjectiveCall:
        """What the loop calls: itself, or an ``nn.Module`` with this objective's own networks, critic or memory."""
        ...

    def effective_weight(self, batch_size: int, n_samples: int) -> float:
        """The number the prior is multiplied by in a run with these sizes."""
        ...

    def at_scale(self, batch_size: int, n_samples: int) -> Self:
        """This objective with a symbolic weight (``"1/M"``, ``"1/N"``) replaced by its number."""
        ...


@dataclass(frozen=True)
class WeightedObjective(Settings):
    """What objectives without state share: they are what the loop calls, and their weight is one of their settings."""

    couples_batch: ClassVar[bool] = False
    own_prior: ClassVar[bool] = False
    weight_setting: ClassVar[str | None] = None
    """Name of the field that holds the weight; None: the weight is 1."""

    @property
    def stochastic(self) -> bool:
        """Whether the encoder is stochastic; objectives where that is a setting override this."""
        return True

    def build(self, x_shape: tuple[int, ...], latent_dim: int) -> ObjectiveCall:
        """Itself; objectives with networks or a memory of their own return a module instead."""
        return self  # type: ignore[return-value]

    def effective_weight(self, batch_size: int, n_samples: int) -> float:
        """The number the prior is multiplied by in a run with these sizes."""
        if self.weight_setting is None:
            return 1.0
        return weight_value(getattr(self, self.weight_setting), batch_size, n_samples)

    def at_scale(self, batch_size: int, n_samples: int) -> Self:
        """The same objective with its weight as a number."""
        if self.weight_setting is None:
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
