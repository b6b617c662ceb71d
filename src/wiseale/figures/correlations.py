"""Correlations between a table's columns: the data's beside those of each system's samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from wiseale.figures.columns import Scale, Table, column_names
from wiseale.figures.style import SMALL, new_figure, wrapped


def correlation_matrices(tables: Mapping[str, Table], columns: Sequence[str] = ()) -> Figure:
    """The correlation of every pair of columns, one matrix per table: the data's beside each system's samples."""
    names = column_names(columns, next(iter(tables.values())).shape[1])
    side = max(1.7, 0.19 * len(names))
    longest = max(map(len, names)) * 0.075  # inches of the longest name
    across = min(3, len(tables))
    down = math.ceil(len(tables) / across)
    figure = new_figure(side * across + longest + 0.9, (side + 0.3) * down + longest + 0.2)
    grid = figure.subplots(down, across, squeeze=False, sharey=True)
    for number, ax in enumerate(grid.flat):
        if number >= len(tables):
            ax.set_axis_off()
            continue
        name, values = list(tables.items())[number]
        shown = ax.imshow(_correlation(values[:, : len(names)]), cmap="RdBu_r", vmin=-1, vmax=1)
        ax.set_title(wrapped(name), fontsize=SMALL + 1, parse_math=False)
        below = number + across < len(tables)  # a matrix with the same names
        ax.set_xticks(
            range(len(names)), [""] * len(names) if below else names, rotation=90, fontsize=SMALL - 1, parse_math=False
        )
        ax.set_yticks(range(len(names)), names, fontsize=SMALL - 1, parse_math=False)
    bar = figure.colorbar(shown, ax=grid, shrink=0.8, pad=0.02)
    bar.set_label("correlation", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL - 1)
    return figure


def _correlation(x: Table) -> Table:
    """Pearson's correlation of the columns, (columns, columns); NaN, drawn white, where a column is constant.

    Of a table with missing cells, each pair by the rows where both are observed.
    """
    if np.isnan(x).any():
        return np.array([[_pair(left, right) for right in x.T] for left in x.T])
    standardised = Scale.of(x)(x)
    constant = x.std(0) == 0
    matrix = standardised.T @ standardised / len(x)
    matrix[constant] = matrix[:, constant] = np.nan
    return matrix


def _pair(left: Table, right: Table) -> float:
    both = ~np.isnan(left) & ~np.isnan(right)
    left, right = left[both], right[both]
    if len(left) < 2 or left.std() == 0 or right.std() == 0:
        return np.nan
    return float(np.corrcoef(left, right)[0, 1])
