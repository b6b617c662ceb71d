"""Tables: of numbers alone, and of columns of different kinds, some of their cells missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from wiseale.errors import counted
from wiseale.spaces.columns import Column, ColumnEntry, Unseen, counted_names, describe_columns, list_ignored
from wiseale.spaces.frames import write_frame
from wiseale.spaces.space import Array, Scaling, Space

if TYPE_CHECKING:
    from wiseale.spaces.features import Features
    from wiseale.spaces.units import Units


@dataclass(frozen=True)
class TableSpace(Space):
    """A row with one cell for each column.

    Attributes:
        columns: in the order of the cells; empty where they have no names.
        ignored: name of each column that is not learned from, and why; labels are not among them.
        frame: library of the data frame it was learned from (``"pandas"``, ``"polars"``, ``"pyarrow"``), or empty.
        unseen: what becomes of levels that training did not see, unless the model's user says otherwise.
    """

    columns: tuple[Column, ...] = ()
    ignored: tuple[tuple[str, str], ...] = ()
    frame: str = ""
    unseen: Unseen = "error"

    dimensions: ClassVar[int] = 1
    default_scaling: ClassVar[Scaling] = "columns"

    def check(self) -> None:
        """ValueError where the attributes are impossible."""
        super().check()
        if self.columns and self.x_shape != (len(self.columns),):
            raise ValueError(f"it names {len(self.columns)} columns for x_shape {list(self.x_shape)}")
        for column in self.columns:
            column.check()
        if any(len(item) != 2 for item in self.ignored):
            raise ValueError("ignored columns have a name and a reason each")

    @property
    def named(self) -> bool:
        """Whether columns are found by name: not where they are 1, 2, … of an array or of a file without a header."""
        return bool(self.frame) or (bool(self.columns) and self.names != counted_names(len(self.columns)))

    @property
    def written(self) -> tuple[Column, ...]:
        """The columns as the user writes them; those without a name are called by their number from 1."""
        return self.columns or tuple(map(Column, counted_names(self.x_shape[0])))

    @property
    def learned(self) -> tuple[Column, ...]:
        """The columns as they are learned."""
        return self.written

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first entry of every column."""
        return tuple(accumulate((column.width for column in self.learned), initial=0))[:-1]

    @cached_property
    def entries(self) -> tuple[ColumnEntry, ...]:
        """The numbers that stand for a row among the features and in the decoder's output, column after column."""
        return tuple(entry for i, column in enumerate(self.learned) for entry in column.entries(i))

    def expand(self, cells: Array) -> npt.NDArray[np.float64]:
        """Cells (n, C) as entries (n, W): of a level 0 or 1, NaN where the cell is missing."""
        columns = np.asarray(cells, np.float64)[:, [entry.column for entry in self.entries]]
        level = np.array([math.nan if entry.level is None else entry.level for entry in self.entries])
        return np.where(np.isnan(level) | np.isnan(columns), columns, columns == level)

    def likeliest_entries(self, cells: Array, most: int) -> list[int]:
        """About ``most`` entries to show: numbers, binary columns and counts, and each category's frequent levels."""
        categories = sum(column.kind == "category" for column in self.learned)
        each = max(1, (most - len(self.learned) + categories) // max(1, categories))
        frequency = np.nansum(self.expand(cells), 0)
        places: list[int] = []
        for column, start in zip(self.learned, self.starts, strict=True):
            order = np.argsort(-frequency[start : start + column.width], kind="stable")
            places += (start + np.sort(order[:each])).tolist()
        return places

    def write(self, x: Array, like: Any = None) -> Any:
        """Cells (n, C) as the frame that the model was fitted on, with the index of ``like``; else as an array."""
        return write_frame(self.columns, x, self.frame, like) if self.frame or self.missing else x

    def describe_columns(self) -> str:
        """The named columns by kind and those left out, in one line; empty where all names are numbers."""
        return "" if all(name.isdecimal() for name in self.names) else describe_columns(self.learned) + self._left_out

    @property
    def _left_out(self) -> str:
        return f"; ignored: {list_ignored(self.ignored)}" if self.ignored else ""


@dataclass(frozen=True)
class NumbersSpace(TableSpace):
    """Numbers that are all observed. A column of truth values is learned as 0 and 1, and written as truth values."""

    kind: ClassVar[str] = "numbers"

    @property
    def learned(self) -> tuple[Column, ...]:
        """Numbers all."""
        return tuple(replace(column, kind="number", levels=()) for column in self.written)

    def likelihood(self, *, binary: bool) -> str:
        """Noise of each column's own."""
        return "bernoulli" if binary else "gaussian:x_sigma=columns"

    def describe(self) -> str:
        """``5 columns``."""
        return counted(self.x_shape[0], "column") + self._left_out


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

    def describe(self) -> str:
        """``3 columns: 2 numbers (mass, length), 1 category (species: 3 levels); ignored: id (row numbers)``."""
        return f"{len(self.columns)} columns: {describe_columns(self.columns)}{self._left_out}"
