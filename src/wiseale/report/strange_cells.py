"""Which cells of a table are strange: those reconstructed worst for their column, with the rows they stand in."""

from __future__ import annotations

import numpy as np

from wiseale.data.dataset import Array
from wiseale.data.tables.raw import as_word
from wiseale.data.tables.schema import Column
from wiseale.evaluation.encoded import OpenRun
from wiseale.models.inference import Codec
from wiseale.report.document import Table

MOST_CELLS = 20
MOST_ROWS = 100_000
"""Rows that are looked at, from the first on."""

_SHOWN = 12  # other cells of the row


def strange_cells(run: OpenRun) -> tuple[Table, ...]:
    """The cells with the largest error over the usual error of their column; nothing where the rows are not a table.

    The error is that of ``reconstruction_error(X, per_column=True)``, the usual one its mean over the rows.
    """
    codec, x = run.codec, run.dataset.train.x[:MOST_ROWS]
    if x.ndim != 2 or not codec.model_config.columns:
        return ()
    parts = list(codec.blocks(len(x)))
    errors = np.concatenate([codec.cell_errors(x[part]) for part in parts])
    x_hat = np.concatenate([codec.decode(codec.encode(x[part]).mu) for part in parts])
    usual = np.nanmean(np.where(np.isnan(errors).all(0), 0.0, errors), 0)
    ratio = np.nan_to_num(errors / np.where(usual > 0, usual, np.inf))
    order = np.argsort(-ratio, axis=None, kind="stable")[:MOST_CELLS]
    columns = _columns(codec)
    rows = []
    for row, i in zip(*np.unravel_index(order, ratio.shape), strict=True):
        observed, expected = _shown(columns[i], x[row, i]), _shown(columns[i], x_hat[row, i])
        others = [f"{c.name} {_shown(c, x[row, k])}" for k, c in enumerate(columns) if k != i][:_SHOWN]
        more = ", …" if len(columns) - 1 > _SHOWN else ""
        cell = (str(row + 1), columns[i].name, observed, expected, f"{ratio[row, i]:.1f}", ", ".join(others) + more)
        rows.append(cell)
    which = f"the first {MOST_ROWS:,}" if len(run.dataset.train.x) > MOST_ROWS else f"all {len(x):,}"
    caption = (
        f"The cells of {which} rows that are reconstructed worst: the error of the cell over the mean error of its "
        "column. Rows are counted from 1, without the header. A large number is a reason to look: an unusual row, a "
        "wrong entry, or a column the model has not understood."
    )
    titles = ("row", "column", "observed", "expected", "times the usual error", "the rest of the row")
    return (Table("strange_cells", titles, tuple(rows), caption),)


def _columns(codec: Codec) -> tuple[Column, ...]:
    table = codec.model_config.table
    return table.columns if table is not None else tuple(Column(n, "number") for n in codec.model_config.columns)


def _shown(column: Column, cell: float) -> str:
    """A cell as the user wrote it, numbers to about four digits."""
    value: Array = column.decode(np.array([cell], np.float64))
    shown = value[0]
    if shown is None or (isinstance(shown, float) and np.isnan(shown)):
        return "missing"
    if isinstance(shown, str | bool) or float(shown).is_integer():
        return as_word(shown if isinstance(shown, str | bool) else float(shown))
    return f"{float(shown):.4g}"
