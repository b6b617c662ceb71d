"""A table's columns as the page shows them, and its rows as entries: one number per column, or per level of a category.

What is decoded and what was observed have the same form: the mean of a number, the rate of a count, the probability of
a binary column's second level, the probability of every level of a category. Of an observed row probabilities are 0 or
1; entries of a missing cell are NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from wiseale.data.dataset import Array
from wiseale.likelihoods.cells import COUNTS
from wiseale.models.inference import Codec


@dataclass(frozen=True)
class ShownColumn:
    """One column of a table.

    Attributes:
        levels: names of the levels of a binary column or a category.
        whole: whether its numbers are whole, and are shown rounded.
        start: its first entry.
        width: how many entries it has.
    """

    name: str
    kind: Literal["number", "binary", "category", "count"] = "number"
    levels: tuple[str, ...] = ()
    whole: bool = False
    start: int = 0
    width: int = 1


def shown_columns(codec: Codec, names: Sequence[str] = ()) -> tuple[ShownColumn, ...]:
    """The columns of a model of tables; none for signals and images."""
    shape, table, schema = codec.model.x_shape, codec.model.table, codec.model_config.table
    if len(shape) != 1:
        return ()
    if table is None or schema is None:
        named = names or [f"x{i}" for i in range(shape[0])]
        return tuple(ShownColumn(name, start=i) for i, name in enumerate(named))
    layout, found = table.layout, []
    for column, start, width in zip(schema.columns, layout.starts, layout.widths, strict=True):
        kind = "count" if column.kind in COUNTS else column.kind
        levels, whole = tuple(str(level) for level in column.levels), column.whole or kind == "count"
        found.append(ShownColumn(column.name, kind, levels, whole, start, width))  # type: ignore[arg-type]
    return tuple(found)


def entries(columns: Sequence[ShownColumn], cells: Array) -> npt.NDArray[np.float32]:
    """Rows of cells (n, C), as they are stored, as entries (n, W)."""
    cells = np.asarray(cells, np.float64)
    parts = []
    for column, values in zip(columns, cells.T, strict=True):
        one_hot = (values[:, None] == np.arange(column.width)).astype(np.float64)
        one_hot[np.isnan(values)] = np.nan
        parts.append(one_hot if column.kind == "category" else values[:, None])
    return np.concatenate(parts, axis=1).astype(np.float32)
