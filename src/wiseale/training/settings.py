"""The complete settings of a run: objects in place of specs, a value in place of every choice left open."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self

from wiseale import config
from wiseale.config import SPECS, SettingError, TrainConfig
from wiseale.likelihoods import LikelihoodSettings
from wiseale.networks.model import NetworkSettings
from wiseale.objectives import Objective
from wiseale.training.schedule import Schedule


class LoggerSettings(Protocol):
    """Settings of a logger, see :mod:`wiseale.runs.loggers`."""

    package: ClassVar[str | None]
    extra: ClassVar[str]

    def opened(self, run: Any) -> AbstractContextManager[Any]:
        """A writer for a run, closed at the end."""
        ...


@dataclass(frozen=True)
class RunSettings:
    """What a run is made from, each setting under the name that it has in :class:`~wiseale.config.TrainConfig`.

    None says that there is no such thing: no clipping (``max_grad_norm``), no early stopping (``patience``), weights
    drawn by the seed (``init_from``), no further log (``logger``).
    """

    data: str
    objective: Objective
    latent_dim: int
    network: NetworkSettings
    likelihood: LikelihoodSettings
    batch_size: int
    max_epochs: int
    lr: float
    lr_schedule: Schedule
    prior_warmup: float
    recipe: Literal["paper", "ours"]
    max_grad_norm: float | None
    patience: int | None
    held_out: float
    held_out_most: int
    watch_every: int
    init_from: str | None
    seed: int
    processes: int
    threads: int
    device: str
    precision: Literal["fp32", "bf16"]
    data_root: str
    checkpoint_every: int
    logger: LoggerSettings | None
    figures: bool

    def spec(self, name: str) -> str:
        """The complete spec of the objective, network, likelihood, schedule or logger."""
        return config.spec_of(SPECS[name], getattr(self, name))

    def to_values(self) -> dict[str, Any]:
        """Plain values by name, specs complete: what config.json holds and a TrainConfig that repeats the run."""
        values = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return values | {name: self.spec(name) for name in SPECS if values[name] is not None}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """The settings that :meth:`to_values` wrote; SettingError where one is missing, unknown or out of its range."""
        stored = config.from_values(TrainConfig, values)
        hints = typing.get_type_hints(cls)
        complete: dict[str, Any] = {}
        for item in dataclasses.fields(cls):
            value = getattr(stored, item.name)
            if value is None and type(None) not in typing.get_args(hints[item.name]):
                raise SettingError(item.name, "is missing")
            if item.name not in SPECS:
                value = config.convert(item.name, value, hints[item.name])
            elif value is not None:
                value = config.build(SPECS[item.name], value)
            complete[item.name] = value
        return cls(**complete)
