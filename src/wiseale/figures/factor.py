"""What the rows of a figure are coloured by: classes, numbers or dates, some of them missing."""

from __future__ import annotations

import datetime as dt
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_CLASSES = 20
OTHER, MISSING = -1, -2
"""Where ``Factor.class_of`` has a row whose class is not drawn, and one without a value."""

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Cells = npt.NDArray[Any]


@dataclass(frozen=True)
class Factor:
    """A name, and a value for each row, (n,); ``circular`` if the values wrap around.

    With at most 20 distinct values, each is a class with its colour and marker. More numbers or dates are drawn on a
    colour scale, which is cyclic for a circular factor; of more words, the 20 most frequent are classes, and the
    others are counted as "other". Missing values are None, NaN, NaT, ``pandas.NA`` and empty text.

    >>> factor = Factor("species", np.array(["owl", None, "emu", "owl"]))
    >>> factor.classes, factor.class_of.tolist(), factor.rest
    (['emu', 'owl'], [1, -2, 0, 1], {-2: 'missing (1)'})
    """

    name: str
    values: Cells
    circular: bool = False

    @cached_property
    def missing(self) -> Mask:
        """Which rows have no value, (n,)."""
        if self.values.dtype.kind == "O":
            return np.array([_is_missing(value) for value in self.values], bool)
        if self.values.dtype.kind in "US":
            return np.asarray(np.char.strip(self.values) == self.values.dtype.type(), bool)
        return np.asarray(self.values != self.values, bool)  # NaN and NaT differ from themselves

    @cached_property
    def _known(self) -> Cells:
        return _typed(self.values[~self.missing])

    @cached_property
    def _kinds(self) -> tuple[Cells, Indices, Indices]:
        """The distinct values, which of them each known value is, and the most frequent ones in their own order."""
        distinct, places, counts = np.unique(self._known, return_inverse=True, return_counts=True)
        return distinct, places, np.sort(np.argsort(-counts, kind="stable")[:MAX_CLASSES])

    @property
    def dates(self) -> bool:
        """Whether the values are dates or times of day on dates."""
        return self._known.dtype.kind == "M"

    @cached_property
    def numbers(self) -> Numbers | None:
        """The values for a colour scale, NaN where they are missing; dates in days since 1970. None for classes."""
        distinct = self._kinds[0]
        if len(distinct) <= MAX_CLASSES or distinct.dtype.kind not in "iufM":
            return None
        days = (self._known - np.datetime64(0, "D")) / np.timedelta64(1, "D") if self.dates else self._known
        return np.asarray(self._spread(days, np.nan))

    @cached_property
    def distinct_names(self) -> list[str]:
        """Names of all distinct values, in their order: dates without a time where none has one."""
        distinct = self._kinds[0]
        if self.dates:
            whole_days = bool((distinct == distinct.astype("datetime64[D]")).all())
            return [str(day) for day in distinct.astype("datetime64[D]" if whole_days else "datetime64[s]")]
        return [f"{value:.15g}" if isinstance(value, np.floating) else str(value) for value in distinct]

    @cached_property
    def classes(self) -> list[str]:
        """Names of the classes that are drawn, in their order; empty where the values are on a colour scale."""
        return [] if self.numbers is not None else [self.distinct_names[place] for place in self._kinds[2]]

    @cached_property
    def class_of(self) -> Indices:
        """The position of each row's class in ``classes``, or ``OTHER`` or ``MISSING``, (n,)."""
        distinct, places, frequent = self._kinds
        class_of_kind = np.full(len(distinct), OTHER)
        class_of_kind[frequent] = np.arange(len(frequent))
        return self._spread(class_of_kind[places], MISSING)

    @cached_property
    def rest(self) -> dict[int, str]:
        """``OTHER`` and ``MISSING`` with their names and counts in a legend, where there are such rows."""
        other = 0 if self.numbers is not None else int((self.class_of == OTHER).sum())
        counts = {OTHER: ("other", other), MISSING: ("missing", int(self.missing.sum()))}
        return {place: f"{name} ({count:,})" for place, (name, count) in counts.items() if count}

    @cached_property
    def ranks(self) -> Indices:
        """The place of each row's value among the distinct ones, missing ones last, (n,): sorts values of any type."""
        distinct, places, _ = self._kinds
        return self._spread(places, len(distinct))

    def _spread(self, known: Cells, missing: float) -> Cells:
        """A number for each row from those of the rows with a value, (n,)."""
        spread = np.full(len(self.values), missing)
        spread[~self.missing] = known
        return spread


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _typed(known: Cells) -> Cells:
    """Values of which none is missing as numbers, dates or text.

    Of text, more than 20 distinct words are dates if all are written as 2024-05-31, and numbers if all are numbers: a
    file's column with missing cells arrives as text.
    """
    if known.dtype.kind == "O":
        if all(isinstance(value, numbers.Real | np.bool_) for value in known):
            return np.array(known.tolist())
        if all(isinstance(value, dt.date) for value in known):
            return np.array([_without_zone(value) for value in known], "datetime64[us]")
        known = known.astype(str)
    if known.dtype.kind not in "US":
        return known
    words, places = np.unique(known.astype(str), return_inverse=True)
    return words[places] if len(words) <= MAX_CLASSES else _parsed(words.tolist())[places]


def _parsed(words: Sequence[str]) -> Cells:
    """Words as numbers or dates if all of them are, else as they are."""
    try:
        if not any("_" in word for word in words):  # Python reads 2020_01 as a number; people do not
            return np.array([float(word) for word in words])
    except ValueError:
        pass
    try:
        if all(word.strip()[4:5] in ("-", "/") for word in words):
            days = [dt.datetime.fromisoformat(word.strip().replace("/", "-")) for word in words]
            return np.array([_without_zone(day) for day in days], "datetime64[us]")
    except ValueError:
        pass
    return np.array(words)


def _without_zone(value: dt.date) -> dt.date:
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    return value
