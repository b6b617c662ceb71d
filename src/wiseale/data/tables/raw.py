"""A column as it was read, numbers or text with some cells missing, before its kind is known."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from wiseale.data.tables.csv_form import Form

MISSING_WORDS = {"", "-", "--", "?", ".", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "+nan", "nat"}
MISSING_WORDS |= {"null", "none", "missing"}
"""Cells of a text table that stand for a missing one."""

Numbers = npt.NDArray[np.float64]

_NUMERIC_START = r"^[-+.,0-9]|^[iInN]|^[^\x00-\x7f]"  # of whatever Python may read as a number


@dataclass(frozen=True)
class RawColumn:
    """Cells of one column, in order.

    Attributes:
        values: float64 with NaN for missing cells, or text in an Arrow array with nulls.
        dtype: the data frame's own name for the type.
        boolean: whether the type is boolean; the values are then 0.0 and 1.0.
        categories: levels that the type declares.
        ordered: whether the type declares an order of them.
        holds: what the type holds if that is neither numbers nor words.
        form: how text is written that may be numbers; None where text is words.
        known: the numbers that text stands for, where they are known; NaN for words.
    """

    values: Any
    dtype: str = ""
    boolean: bool = False
    categories: tuple[Any, ...] | None = None
    ordered: bool = False
    holds: Literal["", "dates", "durations", "nested values"] = ""
    form: Form | None = None
    known: Numbers | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_numeric(self) -> bool:
        """Whether the cells are numbers by their type, and not text."""
        return isinstance(self.values, np.ndarray)

    def missing(self) -> npt.NDArray[np.bool_]:
        """Which cells are missing, (n,)."""
        gone = np.isnan(self.values) if self.is_numeric else self.values.is_null().to_numpy(zero_copy_only=False)
        return np.asarray(gone, bool)

    @cached_property
    def encoded(self) -> tuple[npt.NDArray[np.int32], pa.StringArray]:
        """Of text the position of each cell's word, -1 for a missing cell, and the words as they first occur."""
        encoded = self.values if types.is_dictionary(self.values.type) else self.values.dictionary_encode()
        return encoded.indices.fill_null(-1).to_numpy(), encoded.dictionary

    def look_up(self, positions: Mapping[Any, int]) -> Numbers:
        """The position of each cell's word in a mapping, -1 where it has none."""
        if self.is_numeric:
            return np.array([positions.get(word, -1) for word in self.words()], np.float64)
        cells, words = self.encoded
        return np.array([*(positions.get(word, -1) for word in words.to_pylist()), -1], np.float64)[cells]

    def as_numbers(self) -> tuple[Numbers, int | None]:
        """The cells as numbers, and the position of the first that is not one: it and its likes are NaN."""
        return self._numbers

    @cached_property
    def _numbers(self) -> tuple[Numbers, int | None]:
        if self.is_numeric:
            return self.values, None
        numbers = self.known
        if self.form is not None and numbers is None and types.is_string(self.values.type):
            numbers = parse(self.values, self.form.decimal)
        if numbers is not None:
            wrong = np.isnan(numbers) & ~self.missing() if self.form is None else np.zeros(0, bool)
            return numbers, int(np.argmax(wrong)) if wrong.any() else None
        positions, words = self.encoded
        values, refused = np.full(len(words) + 1, math.nan), np.ones(len(words) + 1, bool)
        refused[-1] = False  # a missing cell
        if self.form is not None:
            likely = pc.indices_nonzero(pc.match_substring_regex(words, _NUMERIC_START))
            for i, word in zip(likely.to_pylist(), words.take(likely).to_pylist(), strict=True):
                if (number := self.form.number(word)) is not None:
                    values[i], refused[i] = number, False
        wrong = refused[positions]
        return values[positions], int(np.argmax(wrong)) if wrong.any() else None

    def words(self) -> Sequence[str | None]:
        """The cells as text, whole numbers without a decimal point; None for missing ones."""
        if not self.is_numeric:
            return list(self.values.to_pylist())
        return [None if math.isnan(value) else as_word(value) for value in self.values.tolist()]

    def word_counts(self) -> dict[str, int]:
        """In how many cells each word is, in the order in which they first occur."""
        if self.is_numeric:
            return Counter(word for word in self.words() if word is not None)
        positions, words = self.encoded
        counts = np.bincount(positions[positions >= 0], minlength=len(words))
        return dict(zip(words.to_pylist(), counts.tolist(), strict=True))

    def shown_values(self, levels: bool) -> Sequence[Any]:
        """The cells as they were written, None for missing ones; numbers that are whole without a decimal point."""
        if not self.is_numeric:
            return self.words()
        if self.boolean:
            return [None if math.isnan(value) else bool(value) for value in self.values.tolist()]
        whole = levels or bool((self.values == np.round(self.values))[~np.isnan(self.values)].all())
        convert = int if whole and not self.dtype.startswith(("float", "double")) else float
        return [None if math.isnan(value) else convert(value) for value in self.values.tolist()]

    def word(self, i: int) -> str:
        """A cell as text."""
        return as_word(self.values[i] if self.is_numeric else self.values[i].as_py())

    def shown(self, i: int) -> str:
        """A cell as an error shows it."""
        text = repr(self.word(i))
        return text if len(text) <= 42 else f"{text[:41]}…"


def from_arrow(column: pa.Array, dtype: str = "") -> RawColumn:
    """An Arrow array as a raw column; ``dtype`` is the name that its data frame has for the type."""
    kind = column.type
    dtype = dtype or str(kind)
    categories: tuple[Any, ...] | None = None
    ordered = False
    if types.is_dictionary(kind):
        if not _is_numeric(kind.value_type):
            categories, ordered = tuple(dict.fromkeys(column.dictionary.to_pylist())), bool(kind.ordered)
        column, kind = column.cast(kind.value_type), kind.value_type
    if types.is_boolean(kind) or _is_numeric(kind):
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return RawColumn(values, dtype, boolean=types.is_boolean(kind))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        column = column.cast(pa.large_string()) if types.is_string_view(kind) else column
        return RawColumn(column, dtype, categories=categories, ordered=ordered)
    nothing = np.full(len(column), math.nan)
    if types.is_null(kind):
        return RawColumn(nothing, dtype)
    if types.is_duration(kind):
        return RawColumn(nothing, dtype, holds="durations")
    return RawColumn(nothing, dtype, holds="dates" if types.is_temporal(kind) else "nested values")


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def from_values(values: list[Any], dtype: str) -> RawColumn:
    """Python values, None or NaN for missing ones: numbers, words, dates, nested values, or a mixture."""
    values = [None if isinstance(value, float) and math.isnan(value) else value for value in values]
    try:
        cells = pa.array(values)
        if not types.is_binary(cells.type):
            return from_arrow(cells, dtype)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pass
    present = [value for value in values if value is not None]
    nothing = np.full(len(values), math.nan)
    if any(isinstance(value, list | tuple | dict | set | np.ndarray) for value in present):
        return RawColumn(nothing, dtype, holds="nested values")
    if all(isinstance(value, datetime.date | datetime.time) for value in present):
        return RawColumn(nothing, dtype, holds="dates")
    numbers = np.array([math.nan if value is None else _as_number(value) for value in values])
    if len(present) == np.count_nonzero(~np.isnan(numbers)):
        return RawColumn(numbers, dtype)
    words = [None if value is None else as_word(value).encode("utf-8", "replace").decode() for value in values]
    return RawColumn(pa.array(words, pa.large_string()), dtype, known=numbers)


def parse(cells: pa.StringArray, decimal: str) -> Numbers | None:
    """Text as numbers by Arrow's parser, which rounds correctly; None where Python's own has to be asked."""
    if decimal == "comma":
        if pc.any(pc.match_substring(cells, ".")).as_py():
            return None
        cells = pc.replace_substring(cells, ",", ".", max_replacements=1)
    try:
        numbers: Numbers = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # a word, or "+5" and other numbers that only Python accepts
        return None
    return numbers if np.count_nonzero(np.isnan(numbers)) == cells.null_count else None  # "nan(x)" is a word


def _as_number(value: Any) -> float:
    """A Python value as a number; NaN where it is none."""
    try:
        return math.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def as_word(value: Any) -> str:
    """A value as text: ``3`` for 3.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
