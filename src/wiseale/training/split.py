"""Which rows are held out, and the numbers of the others, without a list of all rows where there are many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wiseale.config import TrainConfig
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


def held_out_count(n: int, part: float, most: int | None = None) -> int:
    """Rows held out of n: the given part, rounded, and at most ``most``; at least two rows remain to train on."""
    wanted = round(n * part) if most is None else min(round(n * part), most)
    return min(wanted, n - 2) if n > 2 else 0


def split_rows(n: int, settings: TrainConfig) -> Split:
    """The split of n rows, a function of resolved settings: part, largest number and seed.

    Above :data:`~wiseale.randomness.MOST_LISTED` rows nothing of size n is stored. Runs of versions that knew no
    largest number (None) are split as they were.
    """
    assert settings.held_out is not None
    if n < 2:
        raise DataError(f"the data has {n} rows: at least 2 are needed")
    listed = settings.held_out_most is None or n <= MOST_LISTED
    order = shuffled(n, settings.seed, "held out", listed=listed)
    count = held_out_count(n, settings.held_out, settings.held_out_most)
    held = np.sort(order[:count].numpy())
    return Split(np.sort(order[count:].numpy()) if listed else RowsExcept(n, held), held)
