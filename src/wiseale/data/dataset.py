"""What every source of data hands over: rows of observations, and the settings that suit them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]

Reading = Literal["values", "unit", "threshold", "dynamic"]
"""How stored numbers become x: as they are; divided by 255; 1 where at least 128; drawn as Bernoulli(value / 255)."""

Scaling = Literal["none", "columns", "global"]
"""How x is standardised inside the model: not at all; each entry by its own mean and scale; all by one."""


@dataclass(frozen=True)
class Rows:
    """Observations of one split.

    Attributes:
        x: (n, *x_shape), float32 or float64, or uint8 to be read as ``reading`` says; memory-mapped arrays serve too.
        reading: how stored numbers become x.
        factors: what is known of each row, by name, each (n,): labels or generative factors, never trained on.
    """

    x: Array
    reading: Reading = "values"
    factors: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: npt.NDArray[np.int64]) -> Rows:
        """The given rows, copied."""
        return Rows(self.x[rows], self.reading, {name: values[rows] for name, values in self.factors.items()})


@dataclass(frozen=True)
class Preset:
    """Settings that suit a dataset, used where the user gives none.

    Without ``max_epochs`` training lasts until the held-out loss no longer improves.
    """

    network: str
    likelihood: str
    latent_dim: int
    batch_size: int = 64
    max_epochs: int | None = 50
    lr: float = 1e-3
    lr_schedule: str = "constant"
    held_out: float = 0.05


@dataclass(frozen=True)
class Dataset:
    """A named set of observations.

    Attributes:
        name: as the user wrote it, settings included; a path is absolute.
        train: rows to learn from (a part of them is held out by the training loop).
        test: rows that only evaluation reads; None where the source has no split of its own.
        preset: settings that suit it.
        scaling: how x is standardised inside the model.
        scaling_follows_likelihood: whether another likelihood than the preset's changes the scaling.
        fingerprint: SHA-256 of the content, so that a run recognises its data.
        circular: period of each factor that wraps around (phases, angles), by name.
        columns: names of the features of a table, in order; empty where they have none.
    """

    name: str
    train: Rows
    test: Rows | None
    preset: Preset
    fingerprint: str
    scaling: Scaling = "none"
    scaling_follows_likelihood: bool = False
    circular: Mapping[str, float] = field(default_factory=dict)
    columns: tuple[str, ...] = ()

    @property
    def x_shape(self) -> tuple[int, ...]:
        """Shape of one observation: (features,), (channels, length) or (channels, height, width)."""
        return self.train.x.shape[1:]


Progress = Callable[[int, int], None]
"""Told the rows done and the rows in all while a set is packed, first with what an earlier attempt left done."""


class DatasetSource(Protocol):
    """A registered dataset: a frozen dataclass of settings that can load itself."""

    def load(self, data_root: Path, progress: Progress | None = None) -> Dataset:
        """Read or generate the set; ``data_root`` is where files of known datasets lie."""
        ...

    def status(self, data_root: Path) -> str:
        """Whether it can be loaded here, in a few words."""
        ...
