"""A matrix of numbers with NaN for missing cells, as a table of unnamed columns."""

from __future__ import annotations

from functools import partial

import numpy as np

from wiseale.data.dataset import Array
from wiseale.data.finite import row_blocks
from wiseale.data.tables.blocks import gather
from wiseale.data.tables.columns import Selection
from wiseale.data.tables.frames import raw_blocks
from wiseale.data.tables.kinds import choose_counts
from wiseale.data.tables.mixed import encoded, learn_space
from wiseale.errors import DataError
from wiseale.spaces import MixedSpace


def has_missing(x: Array) -> bool:
    """Whether a matrix of numbers has NaN."""
    return x.dtype.kind == "f" and any(bool(np.isnan(x[rows]).any()) for rows in row_blocks(x))


def learn_matrix(x: Array, what: str) -> tuple[Array, MixedSpace]:
    """The cells (n, C) of a matrix that has missing ones, and the kinds of its columns, which are called 1, 2, …."""
    empty = np.flatnonzero(np.all([np.isnan(x[rows]).all(0) for rows in row_blocks(x)], 0))
    if len(empty):
        column = f"column {empty[0] + 1} of {what} (counted from 1)"
        raise DataError(f"{column} is empty, all {len(x):,} cells are missing: leave it out")
    chosen = Selection(what, ("",) * x.shape[1], tuple(range(x.shape[1])), ())
    learned = learn_space(chosen, partial(raw_blocks, x), {})
    space = learned.space
    assert space is not None
    cells, _ = gather(learned.chosen, encoded(space, learned.chosen, partial(raw_blocks, x)), missing=True)
    return cells, choose_counts(space, cells)
