"""Which rows are held out and which are trained on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wiseale.errors import DataError
from wiseale.randomness import shuffled

MOST_HELD_OUT = 50_000
"""Rows held out at the most unless ``held_out_most`` says otherwise: more would cost time and change little."""

Indices = npt.NDArray[np.int64]


class Split(NamedTuple):
    """The rows to train on and the rows held out, each in ascending order."""

    train: Indices
    held_out: Indices


def held_out_count(n: int, part: float, most: int = MOST_HELD_OUT) -> int:
    """Rows held out of n: the given part, rounded, and at most ``most``; at least two rows remain to train on."""
    return min(round(n * part), most, n - 2) if n > 2 else 0


def split_rows(n: int, part: float, most: int, seed: int) -> Split:
    """The split of n rows, of which this part is held out, at most ``most``; a function of its arguments."""
    if n < 2:
        raise DataError(f"the data has {n} rows: at least 2 are needed")
    order = shuffled(n, seed, "held out").numpy()
    count = held_out_count(n, part, most)
    return Split(np.sort(order[count:]), np.sort(order[:count]))
