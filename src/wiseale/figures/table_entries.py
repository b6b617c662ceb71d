"""Columns of different kinds as numbers that can be correlated and subtracted: levels as their shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from wiseale.data.tables.schema import TableSchema
from wiseale.evaluation.encoded import Encoded
from wiseale.figures.columns import MAX_COLUMNS, Levels, Table
from wiseale.likelihoods import LearnedTable


def column_levels(one: Encoded) -> Levels:
    """The levels of each column as text, none for numbers; empty where all columns are numbers."""
    table = one.codec.model_config.table
    if one.model.table is None or table is None:
        return ()
    return [tuple(str(level) for level in column.levels) for column in table.columns]


@dataclass(frozen=True)
class Entry:
    """One number of a row: a column that is a number, or whether a column has this level."""

    name: str
    column: int
    level: int | None = None


def table_entries(one: Encoded, x: Table) -> Sequence[Entry]:
    """The numbers and counts, and the most frequent levels of each category, as many as fit into a figure."""
    table = one.codec.model_config.table
    if one.model.table is None or table is None:
        names = one.codec.model_config.columns or tuple(f"column {i + 1}" for i in range(x.shape[1]))
        return [Entry(name, i) for i, name in enumerate(names)]
    categories = [column for column in table.columns if column.kind == "category"]
    room = MAX_COLUMNS - (len(table.columns) - len(categories))
    most = max(1, room // max(1, len(categories)))
    return [entry for i in range(len(table.columns)) for entry in _entries(table, i, x[:, i], most)]


def _entries(table: TableSchema, i: int, cells: Table, most: int) -> Sequence[Entry]:
    column = table.columns[i]
    if not column.has_levels:
        return [Entry(column.name, i)]
    if column.kind == "binary":
        return [Entry(f"{column.name}: {column.levels[1]}", i, 1)]
    counts = np.bincount(cells[~np.isnan(cells)].astype(int), minlength=len(column.levels))
    shown = sorted(np.argsort(-counts, kind="stable")[:most].tolist())
    return [Entry(f"{column.name}: {column.levels[level]}", i, level) for level in shown]


def entries_of_cells(entries: Sequence[Entry], x: Table) -> Table:
    """The entries of cells in the user's units, (n, entries); of a level 0 or 1, NaN where the cell is missing."""
    columns = []
    for entry in entries:
        cells = x[:, entry.column]
        columns.append(cells if entry.level is None else np.where(np.isnan(cells), cells, cells == entry.level))
    return np.stack(columns, 1).astype(np.float64)


def entries_of_codes(one: Encoded, entries: Sequence[Entry], z: Tensor) -> Table:
    """The expected entries of codes (n, d_z), (n, entries): of a level its probability."""
    likelihood = one.model.decode(z)
    cells: Table = one.codec.in_user_units(likelihood.mean).numpy()
    family = one.model.table
    if not isinstance(family, LearnedTable):
        return cells[:, [entry.column for entry in entries]]
    expected: Table = family.expectation(one.model.decode_output(z)).cpu().numpy()
    layout = family.layout
    columns = []
    for entry in entries:
        if entry.level is None:
            columns.append(cells[:, entry.column])
            continue
        start = layout.starts[entry.column]
        columns.append(expected[:, start + (entry.level if layout.kinds[entry.column] == "category" else 0)])
    return np.stack(columns, 1)
