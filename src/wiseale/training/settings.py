"""What a run is made from: its complete settings, learning-rate schedules, and the facts that follow from the data."""

from __future__ import annotations

import dataclasses
import math
import typing
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self

from wiseale import config
from wiseale.config import SPECS, SettingError, Settings, TrainConfig, setting
from wiseale.likelihoods import LikelihoodSettings
from wiseale.networks.model import NetworkSettings
from wiseale.objectives import Objective
from wiseale.spaces import Scaling


class Schedule(Protocol):
    """The factor of the learning rate after ``epoch`` of ``max_epochs`` epochs; ``epoch`` may be fractional."""

    def __call__(self, epoch: float, max_epochs: int) -> float:
        """The factor."""
        ...


@dataclass(frozen=True)
class Constant(Settings):
    """A constant learning rate: factor 1."""

    def __call__(self, epoch: float, max_epochs: int) -> float:
        """1 at every epoch."""
        return 1.0


@dataclass(frozen=True)
class Step(Settings):
    """Step decay: the learning rate is multiplied by ``factor`` after each of the given epochs.

    >>> schedule = Step(epochs=(10, 20), factor=0.5)
    >>> [schedule(epoch, 30) for epoch in (9, 10, 25)]
    [1.0, 0.5, 0.25]
    """

    epochs: tuple[int, ...] = setting((30,), "epochs after which the rate falls", minimum=1)
    factor: float = setting(0.5, "what it is multiplied by", above=0)

    def __call__(self, epoch: float, max_epochs: int) -> float:
        """``factor`` to the power of the number of given epochs that have passed."""
        return float(self.factor ** sum(epoch >= at for at in self.epochs))


@dataclass(frozen=True)
class Cosine(Settings):
    """Cosine annealing from 1 to ``final``: final + (1 − final)·½(1 + cos(π·epoch/max_epochs)).

    >>> Cosine(final=0.0)(15, 30)
    0.5
    """

    final: float = setting(0.0, "factor at the end", minimum=0)

    def __call__(self, epoch: float, max_epochs: int) -> float:
        """The annealed factor; ``final`` from ``max_epochs`` on."""
        return self.final + (1 - self.final) * 0.5 * (1 + math.cos(math.pi * min(epoch / max_epochs, 1.0)))


@dataclass(frozen=True)
class Logger(Settings):
    """Base of all loggers (:mod:`wiseale.runs.loggers`).

    ``package`` is the module it needs, if any, and ``extra`` the extra of wiseale that installs it.
    """

    package: ClassVar[str | None] = None
    extra: ClassVar[str] = ""

    @abstractmethod
    def opened(self, run: Any) -> AbstractContextManager[Any]:
        """A writer for a run directory, closed at the end."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The numbers the loop runs by; None: no clipping (``max_grad_norm``), no early stopping (``patience``)."""

    batch_size: int
    max_epochs: int
    lr: float
    lr_schedule: Schedule
    prior_warmup: float = 0.0
    max_grad_norm: float | None = None
    patience: int | None = None
    watch_every: int = 1
    seed: int = 0
    checkpoint_every: int = 500
    precision: Literal["fp32", "bf16"] = "fp32"


@dataclass(frozen=True, kw_only=True)
class RunSettings(Plan):
    """What a run is made from, each setting under the name that it has in :class:`~wiseale.config.TrainConfig`.

    None: weights drawn by the seed (``init_from``), no further log (``logger``).
    """

    data: str
    objective: Objective
    latent_dim: int
    network: NetworkSettings
    likelihood: LikelihoodSettings
    recipe: Literal["paper", "ours"]
    held_out: float
    held_out_most: int
    init_from: str | None
    processes: int
    threads: int
    device: str
    data_root: str
    logger: Logger | None
    figures: bool

    def spec(self, name: str) -> str:
        """The complete spec of the objective, network, likelihood, schedule or logger."""
        return config.spec_of(SPECS[name], getattr(self, name))

    def to_values(self) -> dict[str, Any]:
        """Plain values by name, specs complete: what config.json holds and a TrainConfig that repeats the run."""
        values = {name: getattr(self, name) for name in NAMES}
        return values | {name: self.spec(name) for name in SPECS if values[name] is not None}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """The settings that :meth:`to_values` wrote; SettingError where one is missing, unknown or out of its range."""
        stored, hints = config.from_values(TrainConfig, values), typing.get_type_hints(cls)
        complete: dict[str, Any] = {}
        for name in NAMES:
            value = getattr(stored, name)
            if value is None and type(None) not in typing.get_args(hints[name]):
                raise SettingError(name, "is missing")
            if name not in SPECS:
                value = config.convert(name, value, hints[name])
            complete[name] = config.build(SPECS[name], value) if name in SPECS and value is not None else value
        return cls(**complete)


NAMES = tuple(name for name in config.ROLES if name in {item.name for item in dataclasses.fields(RunSettings)})
"""The settings of a run, in the order of :class:`~wiseale.config.TrainConfig`."""


@dataclass(frozen=True)
class RunFacts:
    """Numbers that follow from a run's settings and its data.

    ``prior_weight`` is what the prior is multiplied by after the warm-up; ``parameters`` counts the trainable values of
    the model and of the objective's own networks; ``data_fingerprint`` is the SHA-256 of the data.
    """

    prior_weight: float
    steps_per_epoch: int
    n_train: int
    n_held_out: int
    x_shape: tuple[int, ...]
    parameters: int
    standardized: Scaling
    data_fingerprint: str
