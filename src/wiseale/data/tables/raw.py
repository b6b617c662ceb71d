"""A column as it was read: text, numbers or Python values, some of them missing, before its kind is known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wiseale.data.tables.csv_form import Form

MISSING_WORDS = {"", "-", "--", "?", ".", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "+nan", "nat"}
MISSING_WORDS |= {"null", "none", "missing"}
"""Cells of a text table that stand for a missing one."""

Numbers = npt.NDArray[np.float64]

_NUMERIC_START = r"^[-+.,0-9]|^[iInN]|^[^\x00-\x7f]"  # of whatever Python may read as a number


class Text(Sequence[str | None]):
    """Cells of text in an Arrow array, None for missing ones; ``numbers`` are their values, where they are known."""

    def __init__(self, cells: pa.StringArray | pa.DictionaryArray, numbers: Numbers | None = None) -> None:
        self.cells = cells
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[str | None]:
        return iter(self.cells.to_pylist())

    @overload
    def __getitem__(self, i: int) -> str | None: ...

    @overload
    def __getitem__(self, i: slice) -> Text: ...

    def __getitem__(self, i: int | slice) -> str | Text | None:
        return Text(self.cells[i]) if isinstance(i, slice) else self.cells[i].as_py()

    @cached_property
    def encoded(self) -> tuple[npt.NDArray[np.int32], pa.StringArray]:
        """The position of each cell's word, -1 for a missing cell, and the words in the order they first occur."""
        encoded = self.cells if pa.types.is_dictionary(self.cells.type) else self.cells.dictionary_encode()
        return encoded.indices.fill_null(-1).to_numpy(), encoded.dictionary

    def look_up(self, positions: Mapping[Any, int]) -> Numbers:
        """The position of each cell's word in a mapping, -1 where it has none."""
        cells, words = self.encoded
        return np.array([*(positions.get(word, -1) for word in words.to_pylist()), -1], np.float64)[cells]

    def as_numbers(self, form: Form | None) -> tuple[Numbers, int | None]:
        """The cells as numbers, and the position of the first that is not one; text without a form is words."""
        numbers = self._numbers
        if form is not None and numbers is None and pa.types.is_string(self.cells.type):
            numbers = parse(self.cells, form.decimal)
        if numbers is not None:
            return numbers, None
        positions, words = self.encoded
        values, wrong = np.full(len(words) + 1, math.nan), np.ones(len(words) + 1, bool)
        wrong[-1] = False  # a missing cell
        if form is not None:
            likely = pc.indices_nonzero(pc.match_substring_regex(words, _NUMERIC_START))
            for i, word in zip(likely.to_pylist(), words.take(likely).to_pylist(), strict=True):
                if (number := form.number(word)) is not None:
                    values[i], wrong[i] = number, False
        refused = wrong[positions]
        return values[positions], int(np.argmax(refused)) if refused.any() else None


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


@dataclass(frozen=True)
class RawColumn:
    """Cells of one column, in order.

    Attributes:
        values: float64 with NaN for missing cells, :class:`Text`, or Python values with None for missing cells.
        dtype: the data frame's own name for the type.
        boolean: whether the type is boolean; the values are then 0.0 and 1.0.
        categories: levels that the type declares.
        ordered: whether the type declares an order of them.
        holds: what the type holds if that is neither numbers nor words.
        form: how text is written that may be numbers; None where text is words.
    """

    values: Any
    dtype: str = ""
    boolean: bool = False
    categories: tuple[Any, ...] | None = None
    ordered: bool = False
    holds: Literal["", "dates", "durations", "nested values"] = ""
    form: Form | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_numeric(self) -> bool:
        """Whether the cells are numbers by their type, and not text or Python values."""
        return isinstance(self.values, np.ndarray) and self.values.dtype == np.float64

    def missing(self) -> npt.NDArray[np.bool_]:
        """Which cells are missing, (n,)."""
        if self.is_numeric:
            return np.asarray(np.isnan(self.values), bool)
        if isinstance(self.values, Text):
            return np.asarray(self.values.cells.is_null().to_numpy(zero_copy_only=False), bool)
        return np.array([value is None for value in self.values], bool)

    def as_numbers(self) -> tuple[Numbers, int | None]:
        """The cells as numbers, and the position of the first that is not one: it and its likes are NaN."""
        return self._numbers

    @cached_property
    def _numbers(self) -> tuple[Numbers, int | None]:
        if self.is_numeric:
            return self.values, None
        if isinstance(self.values, Text):
            return self.values.as_numbers(self.form)
        numbers = [_as_number(value) for value in self.values]
        wrong = (i for i, value in enumerate(self.values) if value is not None and numbers[i] is None)
        return np.array([math.nan if number is None else number for number in numbers]), next(wrong, None)

    def words(self) -> Sequence[Any]:
        """The cells as text, whole numbers without a decimal point; None for missing ones."""
        if isinstance(self.values, Text):
            return list(self.values)
        if not self.is_numeric:
            return [value if value is None or isinstance(value, str) else as_word(value) for value in self.values]
        return [None if math.isnan(value) else as_word(value) for value in self.values.tolist()]

    def word_counts(self) -> dict[str, int]:
        """In how many cells each word is, in the order in which they first occur."""
        if not isinstance(self.values, Text):
            return Counter(word for word in self.words() if word is not None)
        positions, words = self.values.encoded
        counts = np.bincount(positions[positions >= 0], minlength=len(words))
        return dict(zip(words.to_pylist(), counts.tolist(), strict=True))

    def shown_values(self, levels: bool) -> Sequence[Any]:
        """The cells as they were written, None for missing ones; numbers that are whole without a decimal point."""
        if not self.is_numeric:
            return list(self.values)
        if self.boolean:
            return [None if math.isnan(value) else bool(value) for value in self.values.tolist()]
        whole = levels or bool((self.values == np.round(self.values))[~np.isnan(self.values)].all())
        convert = int if whole and not self.dtype.startswith(("float", "double")) else float
        return [None if math.isnan(value) else convert(value) for value in self.values.tolist()]

    def shown(self, i: int) -> str:
        """A cell as an error shows it."""
        value = self.values[i]
        text = repr(value if isinstance(value, str) else as_word(value))
        return text if len(text) <= 42 else f"{text[:41]}…"


def _as_number(value: Any) -> float | None:
    """A Python value as a number; None where it is missing or not a number."""
    try:
        return None if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        return None


def as_word(value: Any) -> str:
    """A value as text: ``3`` for 3.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
