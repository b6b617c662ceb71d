"""Columns of different kinds, some of their cells missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from wiseale.spaces.columns import Column, Unseen, describe_columns
from wiseale.spaces.frames import write_frame
from wiseale.spaces.numbers import TableSpace
from wiseale.spaces.space import Array

if TYPE_CHECKING:
    from wiseale.spaces.features import Features
    from wiseale.spaces.units import Units


@dataclass(frozen=True)
class MixedSpace(TableSpace):
    """Rows of cells, one number for each column, see :mod:`wiseale.spaces.columns`; numbers are scaled by column.

    >>> columns = [Column("mass"), Column("colour", "category", ("red", "blue")), Column("hits", "poisson")]
    >>> space = MixedSpace.of(columns)
    >>> space.starts, space.output_shape, space.seen_shape  # the encoder also sees which of the 3 cells were observed
    ((0, 1, 3), (4,), (7,))
    """

    kind: ClassVar[str] = "mixed"
    missing: ClassVar[bool] = True

    @classmethod
    def of(
        cls, columns: Sequence[Column], ignored: tuple[tuple[str, str], ...] = (), unseen: Unseen = "error"
    ) -> MixedSpace:
        """The space of these columns."""
        return cls((len(columns),), scaling="columns", columns=tuple(columns), ignored=ignored, unseen=unseen)

    def check(self) -> None:
        """ValueError where the attributes are impossible."""
        super().check()
        if not self.columns or self.scaling == "global" or self.reading != "values":
            raise ValueError("cells have columns with kinds, scaled by column if at all")

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """The levels of each column as text, none for numbers."""
        return tuple(tuple(str(level) for level in column.levels) for column in self.columns)

    @property
    def meaning(self) -> str:
        """Names, kinds and levels as text: what the cells mean."""
        return repr([(column.name, column.kind, column.levels) for column in self.columns])

    @property
    def features_shape(self) -> tuple[int, ...]:
        """One feature per entry."""
        return (len(self.entries),)

    @property
    def seen_shape(self) -> tuple[int, ...]:
        """The features, and which cells were observed."""
        return (len(self.entries) + len(self.columns),)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """One output per entry."""
        return self.features_shape

    def features(self) -> Features:
        """Centred and scaled entries."""
        from wiseale.spaces.features import CellFeatures

        return CellFeatures(self)

    def _moments(
        self, x: Array, index: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Mean and variance of the observed numbers; 0 and 1 for levels, counts, and columns never observed here."""
        mean, variance = np.zeros(self.x_shape), np.ones(self.x_shape)
        for i, column in enumerate(self.columns):
            cells = np.asarray(x[index, i], np.float64) if column.kind == "number" else np.empty(0)
            cells = cells[~np.isnan(cells)]
            if len(cells):
                mean[i], variance[i] = cells.mean(), cells.var()
        return mean, variance

    def entry_units(self, units: Units) -> Units:
        """Of every entry the map of its column."""
        return units.of_columns([entry.column for entry in self.entries], len(self.columns))

    def likelihood(self, *, binary: bool) -> str:
        """A distribution of its own for each column."""
        return "table"

    def write(self, x: Array, like: Any = None) -> Any:
        """As the frame it was learned from; where that was none, a pandas frame if there are words, else an array."""
        return write_frame(self.columns, x, self.frame, like)

    def describe(self) -> str:
        """``3 columns: 2 numbers (mass, length), 1 category (species: 3 levels); ignored: id (row numbers)``."""
        return f"{len(self.columns)} columns: {describe_columns(self.columns)}{self._left_out}"
