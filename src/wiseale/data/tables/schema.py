"""What the columns of a table are: kinds, levels and types; how cells become numbers and numbers cells again.

A cell is stored as one number: the value of a number or a count, the position of the level for a binary column or a
category, NaN where nothing was observed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from wiseale.data.dataset import Array
from wiseale.data.tables.columns import list_ignored, quote_name
from wiseale.data.tables.kind_error import KindError
from wiseale.data.tables.raw import RawColumn, Text
from wiseale.errors import DataError, counted
from wiseale.registry import did_you_mean

Kind = Literal["number", "binary", "category", "poisson", "negative_binomial"]
Level = str | int | float | bool
Unseen = Literal["error", "missing", "other"]
"""What becomes of a level that training did not see.

``"other"`` counts it as the level "other", which stands for the levels that training saw rarely; in a column without
such levels nothing was learned about it, and it counts as missing.
"""

Numbers = npt.NDArray[np.float64]

_TRUTH = {"false": False, "true": True}


@dataclass(frozen=True)
class Column:
    """One column that is learned from.

    Attributes:
        name: as in the file or data frame; its number where there is none.
        kind: which distribution it has.
        levels: values of a binary column or category, in order.
        whole: every observed number was whole, so numbers that come back are rounded.
        dtype: the data frame's own name for the column's type; empty where it came from a file or an array.
        ordered: whether a pandas categorical was ordered.
        other: the level that stands for rare and unseen ones; empty where there is none.
    """

    name: str
    kind: Kind
    levels: tuple[Level, ...] = ()
    whole: bool = False
    dtype: str = ""
    ordered: bool = False
    other: str = ""

    @property
    def has_levels(self) -> bool:
        """Whether cells are levels and not numbers."""
        return self.kind in ("binary", "category")

    @property
    def distribution(self) -> str:
        """The kind as the ``table`` likelihood writes it."""
        return f"category:{len(self.levels)}" if self.kind == "category" else self.kind

    @cached_property
    def _positions(self) -> dict[Level, int]:
        return {level: i for i, level in enumerate(self.levels)}

    def encode(self, column: RawColumn, where: Any, unseen: Unseen = "error") -> Numbers:
        """Cells as numbers, (n,); ``where(i)`` names the row of a cell that cannot be one."""
        if not self.has_levels:
            cells, wrong = column.as_numbers()
            if wrong is not None:
                advice = column.form.advice([column.values[wrong]]) if column.form else ""
                raise DataError(
                    f"{where(wrong)} has {column.shown(wrong)} in column {_quoted(self.name)}, not a number"
                    + (advice and f": {advice}")
                )
            if self.kind in ("poisson", "negative_binomial"):
                self._require_counts(cells, where)
            return cells
        missing = column.missing()
        if isinstance(column.values, Text) and all(isinstance(level, str) for level in self.levels):
            found = column.values.look_up(self._positions)
        else:
            found = np.array([self._positions.get(value, -1) for value in self._level_values(column)], np.float64)
        unknown = np.flatnonzero((found < 0) & ~missing)
        if self.other:
            found[unknown] = self._positions[self.other]
        elif len(unknown) and unseen == "error":
            cell = column.shown(int(unknown[0]))
            near = did_you_mean(str(column.values[int(unknown[0])]), [str(level) for level in self.levels])
            raise DataError(
                f"{where(int(unknown[0]))} has {cell} in column {_quoted(self.name)}, "
                f"which training did not see{near}; "
                "correct it, or say unseen=missing or unseen=other"
            )
        found[found < 0] = math.nan
        return found

    def _level_values(self, column: RawColumn) -> Sequence[Any]:
        """The cells as levels are looked up: text, or numbers; ``true`` in a file is True in a data frame."""
        numbers: list[float] = column.as_numbers()[0].tolist()
        if all(isinstance(level, str) for level in self.levels):
            if not column.boolean:
                return column.words()
            written = {_TRUTH[level.lower()]: level for level in map(str, self.levels) if level.lower() in _TRUTH}
            return [written.get(bool(number)) if number in (0, 1) else None for number in numbers]
        if isinstance(self.levels[0], bool) and not column.is_numeric:
            return [_TRUTH.get(str(word).lower(), number) for word, number in zip(column.words(), numbers, strict=True)]
        return numbers

    def _require_counts(self, cells: Numbers, where: Any) -> None:
        wrong = np.flatnonzero(~((cells >= 0) & (cells == np.floor(cells))) & ~np.isnan(cells))
        if len(wrong):
            cell = f"{cells[wrong[0]]:g}"
            problem = f"{where(int(wrong[0]))} has {cell} in column {_quoted(self.name)}, which is no count"
            if self.name.isdecimal() and not self.dtype:  # an array has no names to say kinds by
                raise DataError(
                    f"{problem}: correct it, or train on a table that names the column and say it is a number"
                )
            raise KindError(problem, "correct it, or train with {number}", self.name)

    def decode(self, cells: Numbers) -> Array:
        """Numbers as cells again, (n,): levels, rounded where every number was whole; missing ones stay NaN or None."""
        missing = np.isnan(cells)
        if not self.has_levels:
            whole = self.whole or self.kind in ("poisson", "negative_binomial")
            return np.round(cells) if whole else cells
        most = len(self.levels) - 1
        position = np.clip(np.round(np.where(missing, 0, cells)), 0, most).astype(int)
        if not any(isinstance(level, str | bool) for level in self.levels):
            return np.where(missing, math.nan, np.array(self.levels, np.float64)[position])
        result = np.empty(len(cells), object)
        result[:] = [None if gone else self.levels[i] for i, gone in zip(position, missing, strict=True)]
        return result


@dataclass(frozen=True)
class TableSchema:
    """The columns that are learned from, and those that are not, each with the reason.

    Attributes:
        columns: in the order of the cells.
        ignored: name and reason of the columns left out.
        frame: library of the data frame it was learned from (``"pandas"``, ``"polars"``, ``"pyarrow"``), or empty.
        unseen: what becomes of levels that training did not see, unless the model's user says otherwise.
    """

    columns: tuple[Column, ...]
    ignored: tuple[tuple[str, str], ...] = ()
    frame: str = ""
    unseen: Unseen = "error"

    @property
    def kinds(self) -> str:
        """The setting ``kinds`` of the ``table`` likelihood."""
        return ",".join(column.distribution for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that are learned from."""
        return tuple(column.name for column in self.columns)

    @property
    def meaning(self) -> str:
        """Names, kinds and levels as text: what the cells mean."""
        return repr([(column.name, column.kind, column.levels) for column in self.columns])

    @property
    def numbers(self) -> npt.NDArray[np.bool_]:
        """Which columns are numbers, to be standardised."""
        return np.array([column.kind == "number" for column in self.columns])

    def to_values(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> TableSchema:
        """From what JSON held; ValueError, TypeError or KeyError where that is not a schema."""
        known = {item.name for item in fields(Column)}
        columns = []
        for item in values["columns"]:
            if set(item) - known or item["kind"] not in get_args(Kind) or not isinstance(item["name"], str):
                raise ValueError("not a column")
            column = Column(**{**item, "levels": tuple(item["levels"])})
            if not all(isinstance(level, Level) for level in column.levels) or column.has_levels != bool(column.levels):
                raise ValueError("not the levels of a column")
            if column.other and column.other not in column.levels:
                raise ValueError("not a level of a column")
            columns.append(column)
        ignored = tuple((str(name), str(reason)) for name, reason in values["ignored"])
        unseen = values.get("unseen", "error")
        if not columns or unseen not in get_args(Unseen):
            raise ValueError("no columns")
        return cls(tuple(columns), ignored, str(values["frame"]), unseen)

    def describe(self, listed: int = 5) -> str:
        """The columns by kind: ``2 numbers (mass, length), 1 category (species: 3 levels); ignored: name (…)``."""
        named = {"poisson": "count", "negative_binomial": "count", "category": "category", "binary": "binary column"}
        groups: dict[str, list[str]] = {}
        for column in self.columns:
            levels = f": {counted(len(column.levels), 'level')}" if column.kind == "category" else ""
            groups.setdefault(named.get(column.kind, "number"), []).append(f"{quote_name(column.name)}{levels}")
        shown = []
        for kind, names in groups.items():
            plural = kind if len(names) == 1 else "categories" if kind == "category" else f"{kind}s"
            more = ", …" if len(names) > listed else ""
            shown.append(f"{len(names)} {plural} ({', '.join(names[:listed])}{more})")
        return ", ".join(shown) + (f"; ignored: {list_ignored(self.ignored)}" if self.ignored else "")


def _quoted(name: str) -> str:
    return f'"{name}"'
