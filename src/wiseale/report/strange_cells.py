"""Which cells of a table are strange: those the model finds least likely, with the rows they stand in."""

from __future__ import annotations

import numpy as np

from wiseale.data.dataset import Array
from wiseale.data.tables.raw import as_word
from wiseale.errors import counted
from wiseale.evaluation.encoded import OpenRun
from wiseale.report.document import Table
from wiseale.spaces import Column, TableSpace

MOST_CELLS = 20
MOST_ROWS = 100_000
"""Of a longer table only the first rows are ranked."""

_SHOWN = 12  # other cells of the row


def strange_cells(run: OpenRun) -> tuple[Table, ...]:
    """The least likely cells given their row's code; nothing where the rows are not a table with named columns."""
    codec, x = run.codec, run.dataset.train.x[:MOST_ROWS]
    if not isinstance(codec.space, TableSpace) or not codec.space.columns:
        return ()
    parts = list(codec.blocks(len(x)))
    surprise = np.concatenate([codec.cell_surprise(x[part]) for part in parts])
    surprise = np.nan_to_num(surprise, nan=0.0)  # a missing cell has no probability to be unlikely by
    order = np.argsort(-surprise, axis=None, kind="stable")[: min(MOST_CELLS, int((surprise > 0).sum()))]
    if not len(order):
        return ()
    chosen, places = np.unravel_index(order, surprise.shape)
    x_hat = codec.decode(codec.encode(x[chosen]).mu)
    columns = codec.space.written
    rows = []
    for answer, row, i in zip(x_hat, chosen, places, strict=True):
        others = [f"{column.name} {_shown(column, x[row, k])}" for k, column in enumerate(columns) if k != i][:_SHOWN]
        more = ", …" if len(columns) - 1 > _SHOWN else ""
        cell = (columns[i].name, _shown(columns[i], x[row, i]), _shown(columns[i], answer[i]))
        rows.append((str(row + 1), *cell, f"{surprise[row, i]:.1f}", ", ".join(others) + more))
    which = f"the first {MOST_ROWS:,} rows" if len(run.dataset.train.x) > MOST_ROWS else counted(len(x), "row")
    caption = (
        f"Of {which}, the cells that are least likely given the code of their row: log p of the expected value "
        "less log p of the observed one; 3 nats are a factor of 20 in probability. Rows are counted from 1, without "
        "the header. Each is a reason to look: an unusual row, a wrong entry, or a column the model has not understood."
    )
    titles = ("row", "column", "observed", "expected", "nats", "the rest of the row")
    return (Table("strange_cells", titles, tuple(rows), caption),)


def _shown(column: Column, cell: float) -> str:
    """A cell as the user wrote it, numbers to about four digits."""
    value: Array = column.decode(np.array([cell], np.float64))
    shown = value[0]
    if shown is None or (isinstance(shown, float) and np.isnan(shown)):
        return "missing"
    if isinstance(shown, str | bool) or float(shown).is_integer():
        return as_word(shown if isinstance(shown, str | bool) else float(shown))
    return f"{float(shown):.4g}"
