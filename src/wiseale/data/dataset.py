"""Rows of observations: the dataset classes that every data source returns, their fingerprint and their checks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from wiseale.errors import DataError
from wiseale.spaces.space import Array as Array
from wiseale.spaces.space import Reading, Space

STREAMED = 1 << 22
"""Bytes of a block of rows that is read from a file and written to another."""

_BLOCK = 1 << 24  # bytes looked at together


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


@dataclass(frozen=True)
class RowStream:
    """Observations in order, which need not fit in memory.

    Attributes:
        name: used in errors.
        x_shape: shape of one observation.
        n: number of rows; None where it is known only after reading to the end.
        blocks: reads from the start: arrays (rows, *x_shape), float32, float64 or uint8, every value finite.
        columns: names of a table's columns; empty for other files.
    """

    name: str
    x_shape: tuple[int, ...]
    n: int | None
    blocks: Callable[[], Iterator[Array]]
    columns: tuple[str, ...] = ()

    def require(self, x_shape: tuple[int, ...]) -> RowStream:
        """This stream; an error if its rows have another shape."""
        if self.x_shape != x_shape:
            raise DataError(f"{self.name} has rows of shape {self.x_shape}, the model takes {x_shape}")
        return self


class DatasetSource(Protocol):
    """A registered dataset: a frozen dataclass of settings that can load itself."""

    def load(self, data_root: Path, progress: Progress | None = None) -> Dataset:
        """Read or generate the set; ``data_root`` is the folder with the files of named datasets."""
        ...

    def status(self, data_root: Path) -> str:
        """Whether the set can be loaded here, in a few words."""
        ...


def row_blocks(x: Array, size: int = _BLOCK) -> Iterator[slice]:
    """Slices of rows that cover x (n, …), each of ``size`` bytes, so that mapped arrays are never read whole."""
    rows = max(1, size // max(1, x[:1].nbytes))
    for start in range(0, len(x), rows):
        yield slice(start, min(start + rows, len(x)))


def fingerprint(*arrays: Array) -> str:
    """SHA-256 of the dtype, shape and bytes of arrays, in order: by it a run recognises its data.

    >>> x = np.arange(6.0)
    >>> fingerprint(x) == fingerprint(x.copy()), fingerprint(x) == fingerprint(x.reshape(2, 3))
    (True, False)
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        for rows in row_blocks(array):
            digest.update(np.ascontiguousarray(array[rows]).view(np.uint8).data)
    return digest.hexdigest()


@dataclass(frozen=True)
class Flaw:
    """A value that cannot be used: its index in the block, and what is wrong (``"NaN"``, ``"inf"``, …)."""

    index: tuple[int, ...]
    problem: str


def first_flaw(values: Array, *, missing: bool = False) -> Flaw | None:
    """The first value that is NaN, infinite or beyond float32, in which networks compute; None if there is none.

    NaN is no flaw where it stands for a ``missing`` cell.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # too large, or a NaN that signals: found below
        finite = np.isfinite(values.astype(np.float32, copy=False))
        if missing:
            finite |= np.isnan(values)
    if finite.all():
        return None
    index = tuple(int(i) for i in np.argwhere(~finite)[0])
    value = values[index]
    if np.isnan(value):
        return Flaw(index, "NaN")
    return Flaw(index, f"{value:g}" if np.isinf(value) else f"{value:g}, beyond float32,")
