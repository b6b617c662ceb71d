"""``Space``: what one row is, and those of signals and images.

A space is a frozen description; what it fits on training rows is kept in modules beside it.

``units()`` maps the user's units to the network's, ``features()`` turns rows in the network's units into what the
encoder sees. Both are modules that the model holds and saves with its weights; importing a description needs no torch.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from wiseale.errors import counted

if TYPE_CHECKING:
    from wiseale.spaces.columns import Column
    from wiseale.spaces.features import Features
    from wiseale.spaces.units import Units

Array = npt.NDArray[np.generic]

Reading = Literal["values", "unit", "threshold", "dynamic"]
"""How stored numbers become x: unchanged; divided by 255; 1 where at least 128; drawn as Bernoulli(value / 255)."""

Scaling = Literal["none", "columns", "global"]
"""How x is standardised inside the model: not; each entry by its own mean and scale; all entries by the same."""

_MOST_ENTRIES = 1 << 31  # of x
_BLOCK_ENTRIES = 1 << 20  # numbers read at a time


@dataclass(frozen=True)
class Space(ABC):
    """What one row is: its shape, how it is read and scaled, and what a network sees and returns of it.

    Attributes:
        x_shape: shape of a stored row.
        reading: how stored numbers become x.
        scaling: how x is standardised inside the model.
    """

    x_shape: tuple[int, ...]
    reading: Reading = "values"
    scaling: Scaling = "none"

    kind: ClassVar[str]
    """Its name in a model file."""
    dimensions: ClassVar[int]
    """The length of ``x_shape``."""
    default_scaling: ClassVar[Scaling] = "global"
    """Of people's own data, where the likelihood allows it."""
    missing: ClassVar[bool] = False
    """Whether cells may be missing (NaN)."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of a table; none of other rows, nor of a table without names."""
        return ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """The levels of each column as text, none for numbers; empty where x holds numbers alone."""
        return ()

    @property
    def features_shape(self) -> tuple[int, ...]:
        """Shape of a row's features, which a linear encoder takes."""
        return self.x_shape

    @property
    def seen_shape(self) -> tuple[int, ...]:
        """Shape of all that a network sees of a row: its features, and which cells were observed."""
        return self.x_shape

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the decoder's output: one number for every entry's distribution."""
        return self.features_shape

    def check(self) -> None:
        """ValueError where the attributes are of the right types and yet impossible."""
        shape = self.x_shape
        if len(shape) != self.dimensions or min(shape) < 1 or math.prod(shape) > _MOST_ENTRIES:
            raise ValueError(f"x_shape {list(shape[:4])} is impossible for {self.kind}")

    def units(self) -> Units:
        """The map from the user's units to the network's, before it is fitted."""
        shape = self.x_shape if self.scaling == "columns" else ()
        return self._affine(np.zeros(shape), np.ones(shape))

    def fit_units(self, x: Array, index: npt.NDArray[np.int64]) -> Units:
        """The map from the user's units to the network's, fitted on some rows; a constant column keeps its scale."""
        if self.scaling == "none":
            return self.units()
        mean, variance = self._moments(x, index)
        deviation = np.sqrt(variance)
        return self._affine(mean, np.where(deviation > 1e-12 * np.maximum(np.abs(mean), 1e-300), deviation, 1.0))

    def _affine(self, mean: npt.NDArray[np.float64], scale: npt.NDArray[np.float64]) -> Units:
        import torch

        from wiseale.spaces.units import Affine, Units

        if self.scaling == "none":
            return Units()
        return Affine(torch.from_numpy(np.asarray(mean)), torch.from_numpy(np.asarray(scale)))

    def features(self) -> Features:
        """What the encoder sees of x, before it is fitted."""
        from wiseale.spaces.features import Features

        return Features()

    def _moments(
        self, x: Array, index: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Mean and variance in float64, block by block (Chan et al.): accurate for large offsets and many rows."""
        per_entry = self.scaling == "columns"
        factor = 1 / 255 if self.reading in ("unit", "dynamic") else 1.0
        count, mean, squares = 0, np.zeros(()), np.zeros(())
        axis = 0 if per_entry else None
        size = max(1, _BLOCK_ENTRIES // math.prod(self.x_shape))
        for block in np.array_split(index, -(-len(index) // size)):
            part = np.asarray(x[block], np.float64) * factor
            n = len(part) if per_entry else part.size
            delta = part.mean(axis) - mean
            squares = squares + part.var(axis) * n + np.square(delta) * count * n / (count + n)
            mean = mean + delta * n / (count + n)
            count += n
        return mean, squares / count

    def entry_units(self, units: Units) -> Units:
        """The map of the decoder's entries, for the map of x."""
        return units

    def likelihood(self, *, binary: bool) -> str:
        """The likelihood where the user names none; ``binary``: every value is one of two."""
        return "bernoulli" if binary else "gaussian:x_sigma=learned"

    def write(self, x: Array, like: Any = None) -> Any:
        """Rows in the user's units as what the model was fitted on: an array, or a frame with the index of ``like``."""
        return x

    @abstractmethod
    def describe(self) -> str:
        """What a row is, in a few words."""

    def to_values(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {"kind": self.kind, **_without_defaults(self)}


@dataclass(frozen=True)
class SignalsSpace(Space):
    """Signals (channels, length)."""

    kind: ClassVar[str] = "signals"
    dimensions: ClassVar[int] = 2

    def describe(self) -> str:
        """``signals of 1 channel and 32 samples``."""
        return f"signals of {counted(self.x_shape[0], 'channel')} and {counted(self.x_shape[1], 'sample')}"


@dataclass(frozen=True)
class ImagesSpace(Space):
    """Images (channels, height, width); 8-bit ones as ``reading`` says."""

    kind: ClassVar[str] = "images"
    dimensions: ClassVar[int] = 3

    def describe(self) -> str:
        """``images of 1 channel, 28 by 28 pixels``."""
        channels, height, width = self.x_shape
        return f"images of {counted(channels, 'channel')}, {height} by {width} pixels"


def _without_defaults(record: Any) -> dict[str, Any]:
    """The fields of a dataclass that are not at their defaults; columns alike."""
    values = {item.name: value for item in fields(record) if (value := getattr(record, item.name)) != item.default}
    if "columns" in values:
        values["columns"] = [_without_defaults(column) for column in values["columns"]]
    return values
