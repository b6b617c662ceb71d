"""A table's columns side by side: numbers in standardised units, categories as bars, missing cells left out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from wiseale.figures.level_bars import accuracy, draw_accuracies, draw_shares
from wiseale.figures.style import SMALL, axes_grid, canvas, legend_below, line_style, point_style, root, wrapped

MAX_COLUMNS = 16
_ACROSS = 4
_RANGE = 3.5  # standard deviations shown on either side of the mean

Table = npt.NDArray[np.floating]
Mask = npt.NDArray[np.bool_]
Levels = Sequence[Sequence[str]]
"""The levels of each column, none for numbers; empty where all are numbers."""


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of each column of the data; 1 for a constant column."""

    mean: Table
    deviation: Table

    @classmethod
    def of(cls, x: Table) -> Scale:
        """The scale of data (n, columns), of the observed cells alone."""
        x = np.where(np.isnan(x).all(0), 0.0, x)  # a column of which none of these rows has a cell
        deviation = np.nanstd(x, 0)
        return cls(np.nanmean(x, 0), np.where(deviation > 0, deviation, 1.0))

    def __call__(self, x: Table) -> Table:
        """x in standardised units."""
        return (x - self.mean) / self.deviation


def column_names(columns: Sequence[str], n: int) -> list[str]:
    """The first ``MAX_COLUMNS`` names; columns without a name are numbered from 1."""
    return list(columns or [f"column {i + 1}" for i in range(n)])[:MAX_COLUMNS]


def column_reconstructions(
    x: Table,
    x_hat: Mapping[str, Table],
    columns: Sequence[str] = (),
    unseen: Mask | None = None,
    on: Figure | SubFigure | None = None,
    levels: Levels = (),
) -> Figure:
    """One panel per column: observed against reconstructed values (n, columns), the diagonal dashed.

    Rows marked as ``unseen`` (not learned from) have large markers. With one system, each panel shows the column's R²:
    1 − Σ(x − x_hat)² / Σ(x − mean)² over the unseen rows, or over all if none is marked. A column with ``levels``
    has a bar for each: how often it is reconstructed.
    """
    scale, names = Scale.of(x), column_names(columns, x.shape[1])
    figure, axes = _panels(on, len(names), 2.1)
    marked = np.zeros(len(x), bool) if unseen is None else unseen
    counted = marked if marked.any() else ~marked
    for column, ax in enumerate(axes):
        title = wrapped(names[column], 22)
        if levels and levels[column]:
            draw_accuracies(ax, x[:, column], [values[:, column] for values in x_hat.values()], levels[column])
            if len(x_hat) == 1:
                (values,) = x_hat.values()
                title += f"\naccuracy {accuracy(x[counted, column], values[counted, column]):.0%}"
            ax.set_title(title, fontsize=SMALL, parse_math=False)
            continue
        ax.axline((0, 0), slope=1, color="0.6", linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
        for number, values in enumerate(x_hat.values()):
            colour, marker = point_style(number)
            observed, found = scale(x)[:, column], scale(values)[:, column]
            style: dict[str, Any] = {"color": colour, "markeredgewidth": 0, "rasterized": True}
            ax.plot(observed[~marked], found[~marked], ".", markersize=2.5, alpha=0.5, **style)
            ax.plot(observed[marked], found[marked], marker, markersize=4, alpha=0.9, **style)
        if len(x_hat) == 1:
            title += f"\nR² {_r2(x[counted, column], values[counted, column]):.2f}"
        ax.set_title(title, fontsize=SMALL, parse_math=False)
        _same_range(ax)
    scatters = [not (levels and levels[column]) for column in range(len(names))]
    for column, ax in enumerate(axes):
        if scatters[column] and not any(scatters[column - column % _ACROSS : column]):
            ax.set_ylabel("reconstructed", fontsize=SMALL)
        if column >= len(axes) - _ACROSS and scatters[column]:
            ax.set_xlabel("observed", fontsize=SMALL)
    if len(x_hat) > 1 or (marked.any() and any(scatters)):
        _add_key(figure, axes[0], list(x_hat), bool(marked.any() and any(scatters)))
    return root(figure)


def column_distributions(
    x: Table,
    samples: Mapping[str, Table],
    columns: Sequence[str] = (),
    on: Figure | SubFigure | None = None,
    levels: Levels = (),
) -> Figure:
    """One panel per column: a histogram of the data in grey, and of each system's samples as an outline.

    A column with ``levels`` has bars: the share of each.
    """
    scale, names = Scale.of(x), column_names(columns, x.shape[1])
    figure, axes = _panels(on, len(names), 1.4)
    bins = np.linspace(-_RANGE, _RANGE, 29)
    for column, ax in enumerate(axes):
        ax.set_title(wrapped(names[column], 22), fontsize=SMALL, parse_math=False)
        if levels and levels[column]:
            drawn = [values[:, column] for values in samples.values()]
            draw_shares(ax, x[:, column], drawn, list(samples), levels[column])
            continue
        ax.stairs(_density(scale(x)[:, column], bins), bins, fill=True, color="0.82", label="data")
        for number, (name, values) in enumerate(samples.items()):
            colour, dash = line_style(number)
            density = _density(scale(values)[:, column], bins)
            ax.stairs(density, bins, color=colour, linestyle=dash, linewidth=1.2, label=name)
        ax.set_xticks([-2, 0, 2])
        ax.set_yticks([])
        ax.tick_params(labelsize=SMALL - 1)
    legend_below(figure, axes[0])
    return root(figure)


def _panels(on: Figure | SubFigure | None, n: int, height: float) -> tuple[Figure | SubFigure, list[Axes]]:
    across = min(_ACROSS, n)
    figure = canvas(on, 1.9 * across, height * math.ceil(n / across) + 0.4)
    return figure, axes_grid(figure, n, across)


def _add_key(figure: Figure | SubFigure, ax: Axes, systems: Sequence[str], marked: bool) -> None:
    """A legend of the systems, if there are several, and of the two sizes of markers."""
    for number, name in enumerate(systems if len(systems) > 1 else []):
        colour, marker = point_style(number)
        ax.plot([], [], marker, color=colour, markersize=4, markeredgewidth=0, label=name)
    if marked:
        ax.plot([], [], "o", color="0.3", markersize=4, label="large: not learned from")
    legend_below(figure, ax)


def _density(values: Table, bins: Table) -> Table:
    """A histogram of the area 1; values beyond the bins are counted in the first and the last."""
    return np.histogram(values[~np.isnan(values)].clip(bins[0], bins[-1]), bins, density=True)[0]


def _r2(observed: Table, found: Table) -> float:
    seen = ~np.isnan(observed)
    observed, found = observed[seen], found[seen]
    total = ((observed - observed.mean()) ** 2).sum()
    return float(1 - ((observed - found) ** 2).sum() / total) if total > 0 else float("nan")


def _same_range(ax: Axes) -> None:
    low = min(ax.get_xlim()[0], ax.get_ylim()[0])
    high = max(ax.get_xlim()[1], ax.get_ylim()[1])
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    ax.set_box_aspect(1)
    ax.locator_params(nbins=4)
    ax.tick_params(labelsize=SMALL - 1)
