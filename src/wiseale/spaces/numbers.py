"""Tables, and the plainest of them: numbers in every column, or in every entry of a vector."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from wiseale.errors import counted
from wiseale.spaces.columns import Column, ColumnEntry, Unseen, counted_names, describe_columns, list_ignored
from wiseale.spaces.frames import write_frame
from wiseale.spaces.space import Array, Scaling, Space


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
            of_column = np.arange(start, start + column.width)
            frequent = np.argsort(-frequency[of_column], kind="stable")[:each]
            places += of_column[np.sort(frequent)].tolist() if column.width > 1 else of_column.tolist()
        return places

    def write(self, x: Array, like: Any = None) -> Any:
        """Cells (n, C) as the frame that the model was fitted on, with the index of ``like``; else as an array."""
        return write_frame(self.columns, x, self.frame, like) if self.frame else x

    def describe_columns(self) -> str:
        """The named columns by kind and those left out, in one line; empty where all names are numbers."""
        if all(name.isdecimal() for name in self.names):
            return ""
        return describe_columns(self.learned) + self._left_out

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
