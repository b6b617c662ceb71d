"""Numbers from outside become float32: finite, or refused with their place; read in blocks, so that memory is flat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wiseale.data.dataset import Array

_BLOCK = 1 << 24  # bytes looked at together
_STEPS = 64  # a column that varies by fewer float32 steps than this would be learned as a staircase


@dataclass(frozen=True)
class Flaw:
    """A value that cannot be used: its index in the block, and what is wrong (``"NaN"``, ``"inf"``, …)."""

    index: tuple[int, ...]
    problem: str


def row_blocks(x: Array) -> Iterator[slice]:
    """Slices of rows that cover x (n, …), each of a few megabytes."""
    rows = max(1, _BLOCK // max(1, x[:1].nbytes))
    for start in range(0, len(x), rows):
        yield slice(start, min(start + rows, len(x)))


def to_float32(values: Array) -> tuple[npt.NDArray[np.float32], Flaw | None]:
    """The values as float32, and the first of them that is not finite there."""
    with np.errstate(over="ignore", invalid="ignore"):  # too large, or a NaN that signals: found below
        converted = values.astype(np.float32, copy=False)
    finite = np.isfinite(converted)
    if finite.all():
        return converted, None
    index = tuple(int(i) for i in np.argwhere(~finite)[0])
    value = values[index]
    if np.isnan(value):
        return converted, Flaw(index, "NaN")
    return converted, Flaw(index, f"{value:g}" if np.isinf(value) else f"{value:g}, beyond float32,")


class ColumnRange:
    """Smallest and largest value of each column, gathered block by block before rounding to float32."""

    def __init__(self, n_columns: int) -> None:
        self.low = np.full(n_columns, np.inf)
        self.high = np.full(n_columns, -np.inf)
        self._exact = np.ones(n_columns, bool)

    def add(self, values: Array, converted: npt.NDArray[np.float32]) -> None:
        """Take account of a block (rows, columns), given as it came and as float32."""
        self.low = np.minimum(self.low, values.min(axis=0))
        self.high = np.maximum(self.high, values.max(axis=0))
        self._exact &= (converted == values).all(axis=0)

    def constant(self) -> npt.NDArray[np.intp]:
        """The columns that hold one value only."""
        return np.flatnonzero(self.low == self.high)

    def blurred(self) -> npt.NDArray[np.intp]:
        """The columns whose variation float32 rounds away: seconds since 1970, say, that span a minute."""
        step = np.spacing(np.maximum(np.abs(self.low), np.abs(self.high)).astype(np.float32))
        spread = self.high - self.low
        return np.flatnonzero((spread > 0) & (spread < _STEPS * step) & ~self._exact)
