"""Numbers from outside: finite and within float32's range, or refused with their place; read in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from wiseale.data.dataset import Array

_BLOCK = 1 << 24  # bytes looked at together


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


def first_flaw(values: Array, *, missing: bool = False) -> Flaw | None:
    """The first value that is NaN, infinite or beyond float32, in which networks compute; None if there is none.

    NaN is no flaw where it stands for a ``missing`` cell.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # too large, or a NaN that signals: found below
        finite = np.isfinite(values.astype(np.float32, copy=False))
        if missing:
            finite |= np.isnan(values)
    if finite.all():
        return None
    index = tuple(int(i) for i in np.argwhere(~finite)[0])
    value = values[index]
    if np.isnan(value):
        return Flaw(index, "NaN")
    return Flaw(index, f"{value:g}" if np.isinf(value) else f"{value:g}, beyond float32,")
