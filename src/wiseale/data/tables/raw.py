"""A column as it was read: text, numbers or Python values, some of them missing, before its kind is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from wiseale.data.tables.csv_form import Form

MISSING_WORDS = {"", "-", "--", "?", "na", "n/a", "#n/a", "nan", "null", "none", "missing", "<na>", "nat", "."}
"""Cells of a text table that stand for a missing one."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RawColumn:
    """Cells of one column, in order.

    Attributes:
        values: float64 with NaN for missing cells, or Python values with None for them.
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
        return np.array([value is None for value in self.values], bool)

    def as_numbers(self) -> tuple[Numbers, int | None]:
        """The cells as numbers, and the position of the first that is not one: it and its likes are NaN."""
        return self._numbers

    @cached_property
    def _numbers(self) -> tuple[Numbers, int | None]:
        if self.is_numeric:
            return self.values, None
        if self.form is not None:
            try:
                return np.array(self.form.numbers(["nan" if v is None else v for v in self.values]), np.float64), None
            except ValueError:
                pass
        result, wrong = np.full(len(self.values), math.nan), None
        for i, value in enumerate(self.values):
            if value is None:
                continue
            number = self._number(value)
            if number is None:
                wrong = i if wrong is None else wrong
            else:
                result[i] = number
        return result, wrong

    def _number(self, value: Any) -> float | None:
        if isinstance(value, str):
            if self.form is None:
                return None
            try:
                return self.form.numbers([value])[0]
            except ValueError:
                return None
        try:
            return float(value)
        except (TypeError, ValueError):
            return None

    def words(self) -> Sequence[Any]:
        """The cells as text, whole numbers without a decimal point; None for missing ones."""
        if not self.is_numeric:
            return [value if value is None or isinstance(value, str) else as_word(value) for value in self.values]
        return [None if math.isnan(value) else as_word(value) for value in self.values.tolist()]

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


def as_word(value: Any) -> str:
    """A value as text: ``3`` for 3.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
