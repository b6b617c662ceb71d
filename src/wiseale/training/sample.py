"""Some of the training rows, drawn by the seed: what a model starts from does not need all of them."""

from __future__ import annotations

from torch import Tensor

from wiseale.randomness import shuffled

MOST_ROWS = 20_000
"""Rows drawn at the most."""

_MOST_ENTRIES = 1 << 25  # of those rows together


def sampled(n: int, entries: int, seed: int) -> Tensor:
    """Positions of some of n rows with so many entries each, in ascending order; of all rows if they are few."""
    count = min(n, MOST_ROWS, max(2, _MOST_ENTRIES // entries))
    return shuffled(n, seed, "start")[:count].sort().values
