"""A table's columns: kind, levels and types, and how numbers become the cells of a user's table again.

A cell is stored as one number: the value of a number or a count, the position of the level for a binary column or a
category, NaN where nothing was observed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from wiseale import config
from wiseale.errors import DataError, counted
from wiseale.spaces.space import Array

Kind = Literal["number", "binary", "category", "poisson", "negative_binomial"]
Level = str | int | float | bool
Unseen = Literal["error", "missing", "other"]
"""What becomes of a level that training did not see.

``"other"`` counts it as the level "other", which stands for the levels that training saw rarely; in a column without
such levels nothing was learned about it, and it counts as missing.
"""

COUNTS = ("poisson", "negative_binomial")

MOST_LEVELS = 1_000
"""Levels of a category at the most."""

_LISTED = 5  # columns that a description names


@dataclass(frozen=True)
class ColumnEntry:
    """One number among a row's features and the decoder's outputs: a column's, or whether it has this level."""

    name: str
    column: int
    level: int | None = None


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
    kind: Kind = "number"
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
    def is_count(self) -> bool:
        """Whether cells are counts."""
        return self.kind in COUNTS

    @property
    def width(self) -> int:
        """Entries of the column among the features, and among the decoder's outputs: one per level of a category."""
        return len(self.levels) if self.kind == "category" else 1

    def entries(self, position: int) -> tuple[ColumnEntry, ...]:
        """Its entries, where it is the column at this position."""
        if self.kind == "category":
            return tuple(ColumnEntry(f"{self.name}: {level}", position, k) for k, level in enumerate(self.levels))
        if self.kind == "binary":
            return (ColumnEntry(f"{self.name}: {self.levels[1]}", position, 1),)
        return (ColumnEntry(self.name, position),)

    def check(self) -> None:
        """ValueError where the attributes contradict each other."""
        if self.has_levels != bool(self.levels) or len(self.levels) > MOST_LEVELS:
            raise ValueError(f"a column of the kind {self.kind} has {len(self.levels)} levels")
        if self.kind == "binary" and len(self.levels) != 2:
            raise ValueError(f"a binary column has {len(self.levels)} levels")
        if self.other and self.other not in self.levels:
            raise ValueError(f"{self.other[:40]!r} is not a level of its column")

    def decode(self, cells: npt.NDArray[np.float64]) -> Array:
        """Numbers as cells again, (n,): levels, rounded where every number was whole; missing ones stay NaN or None."""
        missing = np.isnan(cells)
        if not self.has_levels:
            return np.round(cells) if self.whole or self.is_count else cells
        position = np.clip(np.round(np.where(missing, 0, cells)), 0, len(self.levels) - 1).astype(int)
        if not any(isinstance(level, str | bool) for level in self.levels):
            return np.where(missing, math.nan, np.array(self.levels, np.float64)[position])
        result = np.empty(len(cells), object)
        result[:] = [None if gone else self.levels[i] for i, gone in zip(position, missing, strict=True)]
        return result


def counted_names(count: int) -> tuple[str, ...]:
    """The names of columns that have none of their own.

    >>> counted_names(3)
    ('1', '2', '3')
    """
    return tuple(str(i + 1) for i in range(count))


def describe_columns(columns: Sequence[Column]) -> str:
    """The columns by kind: ``2 numbers (mass, length), 1 category (species: 3 levels)``."""
    nouns = {"number": "number", "category": "category", "binary": "binary column"}
    groups: dict[str, list[str]] = {}
    for column in columns:
        levels = f": {counted(len(column.levels), 'level')}" if column.kind == "category" else ""
        groups.setdefault(nouns.get(column.kind, "count"), []).append(f"{quote_name(column.name)}{levels}")
    parts = []
    for noun, names in groups.items():
        plural = noun if len(names) == 1 else "categories" if noun == "category" else f"{noun}s"
        more = ", …" if len(names) > _LISTED else ""
        parts.append(f"{len(names)} {plural} ({', '.join(names[:_LISTED])}{more})")
    return ", ".join(parts)


def list_ignored(ignored: Sequence[tuple[str, str]]) -> str:
    """Columns that are not learned from: ``id (row numbers); when (dates)``."""
    parts = [f"{quote_name(name)} ({reason})" for name, reason in ignored[:_LISTED]]
    return "; ".join([*parts, "…"] if len(ignored) > _LISTED else parts)


def quote_name(name: str) -> str:
    """A column's name in a list, in quotes where it holds what separates names; as ``--columns`` takes it.

    >>> quote_name("mass"), quote_name("bill,len")
    ('mass', '"bill,len"')
    """
    name = " ".join(name.split())
    return config.quote(name) if set(name) & set(',:;="') else name


class KindError(DataError):
    """A column cannot be learned as it is, and another kind would repair it.

    ``advice`` says what to do, with ``{ignore}`` where the column is to be said to be of the kind ``ignore``.

    >>> error = KindError('column "id" is empty', "say {ignore}", "id")
    >>> str(error)
    'column "id" is empty: say id:ignore'
    """

    def __init__(self, problem: str, advice: str, name: str) -> None:
        super().__init__(problem, advice, name)
        self.problem, self.advice, self.name = problem, advice, name

    def __str__(self) -> str:
        return self.message(lambda name, kind: f"{quote_name(name)}:{kind}")

    def message(self, spell: Callable[[str, str], str]) -> str:
        """The error in words; ``spell`` writes a column and its kind as the reader's interface does."""
        kinds = {kind: spell(self.name, kind) for kind in ("number", "category", "ignore")}
        return f"{self.problem}: {self.advice.format(**kinds)}"
