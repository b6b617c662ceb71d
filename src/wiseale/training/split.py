"""Which rows are held out, and the numbers of the others, without a list of all rows where there are many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wiseale.errors import DataError
from wiseale.randomness import MOST_LISTED, shuffled

MOST_HELD_OUT = 50_000
"""Rows held out at the most unless ``held_out_most`` says otherwise: more would cost time and change little."""

Indices = npt.NDArray[np.int64]


class Split(NamedTuple):
    """The rows to train on and the rows held out, each in ascending order."""

    train: Indices | RowsExcept
    held_out: Indices


class RowsExcept:
    """The numbers 0, …, n − 1 without a few: ``rows[positions]`` are the numbers at these positions among the others.

    With h the sorted numbers left out, the number at position p is p + #{j : h_j − j ≤ p}.

    >>> RowsExcept(7, np.array([0, 3]))[torch.arange(5)]
    tensor([1, 2, 4, 5, 6])
    """

    def __init__(self, n: int, left_out: Indices) -> None:
        self._n = n - len(left_out)
        self._before = torch.from_numpy(left_out - np.arange(len(left_out)))

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, positions: Tensor) -> Tensor:
        return positions + torch.searchsorted(self._before, positions, right=True)


def held_out_count(n: int, part: float, most: int = MOST_HELD_OUT) -> int:
    """Rows held out of n: the given part, rounded, and at most ``most``; at least two rows remain to train on."""
    return min(round(n * part), most, n - 2) if n > 2 else 0


def split_rows(n: int, part: float, most: int, seed: int) -> Split:
    """The split of n rows, of which this part is held out, at most ``most``; a function of its arguments.

    Above :data:`~wiseale.randomness.MOST_LISTED` rows nothing of size n is stored.
    """
    if n < 2:
        raise DataError(f"the data has {n} rows: at least 2 are needed")
    order = shuffled(n, seed, "held out")
    count = held_out_count(n, part, most)
    held = np.sort(order[:count].numpy())
    return Split(np.sort(order[count:].numpy()) if n <= MOST_LISTED else RowsExcept(n, held), held)
