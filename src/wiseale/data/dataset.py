"""The dataset classes that every data source returns: rows of observations, and preset training settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from wiseale.spaces.space import Array as Array
from wiseale.spaces.space import Reading, Space


@dataclass(frozen=True)
class Rows:
    """Observations of one split.

    Attributes:
        x: (n, *x_shape), float32 or float64, or uint8 converted as ``reading`` says; may be memory-mapped.
        reading: how stored numbers become x.
        factors: labels or generative factors by name, each (n,); never trained on.
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
    """Training settings of a dataset, used where the user gives none.

    Without ``max_epochs`` training lasts until the held-out loss no longer improves.
    """

    network: str
    likelihood: str
    latent_dim: int
    batch_size: int = 64
    max_epochs: int | None = 50
    lr: float = 1e-3
    lr_schedule: str = "constant"
    prior_warmup: float = 0.0
    held_out: float = 0.05


@dataclass(frozen=True)
class Dataset:
    """A named set of observations.

    Attributes:
        name: the dataset's own, or the absolute path with the settings given.
        train: training rows (the training loop holds out some of them).
        test: rows read only by evaluation; None if the source has no test split.
        preset: training settings for this dataset; of the paper's datasets, the paper's.
        ours: settings of the preset that ``--recipe ours`` replaces.
        space: what one row is.
        scaling_follows_likelihood: whether another likelihood than the preset's changes the scaling.
        fingerprint: SHA-256 of the content, so that a run recognises its data.
        circular: period of each factor that wraps around (phases, angles), by name.
    """

    name: str
    train: Rows
    test: Rows | None
    preset: Preset
    fingerprint: str
    space: Space
    scaling_follows_likelihood: bool = False
    circular: Mapping[str, float] = field(default_factory=dict)
    ours: Mapping[str, float | str] = field(default_factory=dict)

    @property
    def x_shape(self) -> tuple[int, ...]:
        """Shape of one observation: (features,), (channels, length) or (channels, height, width)."""
        return self.space.x_shape


Progress = Callable[[int, int], None]
"""Called with (rows done, rows in total) while a set is packed; the first call counts rows of an earlier attempt."""


class DatasetSource(Protocol):
    """A registered dataset: a frozen dataclass of settings that can load itself."""

    def load(self, data_root: Path, progress: Progress | None = None) -> Dataset:
        """Read or generate the set; ``data_root`` is the folder with the files of named datasets."""
        ...

    def status(self, data_root: Path) -> str:
        """Whether the set can be loaded here, in a few words."""
        ...
