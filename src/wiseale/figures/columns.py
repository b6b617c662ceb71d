"""A table's columns side by side: numbers in the user's units, categories as bars, missing cells left out."""

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
_MOST_NAMED = 12
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


def column_names(columns: Sequence[str], n: int, most: int = MAX_COLUMNS) -> list[str]:
    """The first ``most`` of n names; columns without a name are numbered from 1."""
    return list(columns or [f"column {i + 1}" for i in range(n)])[:most]


def drawn_columns(x: Table) -> list[int]:
    """The columns that have a panel: the first ``MAX_COLUMNS`` that are not constant, or all if every one is.

    >>> drawn_columns(np.array([[1.0, 7.0, np.nan], [2.0, 7.0, 3.0], [2.0, np.nan, 4.0]]))
    [0, 2]
    """
    constant = _constant(x)
    return [column for column in range(x.shape[1]) if constant.all() or not constant[column]][:MAX_COLUMNS]


def column_reconstructions(
    x: Table,
    x_hat: Mapping[str, Table],
    columns: Sequence[str] = (),
    unseen: Mask | None = None,
    on: Figure | SubFigure | None = None,
    levels: Levels = (),
) -> Figure:
    """One panel per column: observed against reconstructed values (n, columns), the diagonal dashed.

    Rows marked as ``unseen`` (not learned from) have large markers. With one system, each panel shows the column's R²,
    1 − Σ(x − x_hat)² / Σ(x − mean)², over all rows, and over the unseen ones if some are marked. A column with
    ``levels`` has a bar for each: how often it is reconstructed, of all rows. Constant columns are named below.
    """
    names, drawn = column_names(columns, x.shape[1], x.shape[1]), drawn_columns(x)
    figure, axes = _panels(on, len(drawn), 2.1)
    marked = np.zeros(len(x), bool) if unseen is None else unseen
    for column, ax in zip(drawn, axes, strict=True):
        cells, answers = x[:, column], [values[:, column] for values in x_hat.values()]
        title, of_levels = wrapped(names[column], 22), levels[column] if levels else ()
        if of_levels:
            draw_accuracies(ax, cells, answers, of_levels)
        else:
            _draw_scatter(ax, cells, answers, marked)
        if len(answers) == 1:
            title += f"\n{_quality(cells, answers[0], marked, bool(of_levels))}"
        ax.set_title(title, fontsize=SMALL, parse_math=False)
    scatters = [not (levels and levels[column]) for column in drawn]
    for place, ax in enumerate(axes):
        if scatters[place] and not any(scatters[place - place % _ACROSS : place]):
            ax.set_ylabel("reconstructed", fontsize=SMALL)
        if scatters[place] and not any(scatters[place + _ACROSS :: _ACROSS]):
            ax.set_xlabel("observed", fontsize=SMALL)
    _add_key(figure, axes[0], list(x_hat), bool(marked.any() and any(scatters)), _note(x, names, drawn))
    return root(figure)


def column_distributions(
    x: Table,
    samples: Mapping[str, Table],
    columns: Sequence[str] = (),
    on: Figure | SubFigure | None = None,
    levels: Levels = (),
) -> Figure:
    """One panel per column: a histogram of the data in grey, and of each system's samples as an outline.

    Values beyond 3.5 standard deviations of the data are counted at the ends. A column with ``levels`` has bars: the
    share of each. Constant columns are named below.
    """
    scale, names, drawn = Scale.of(x), column_names(columns, x.shape[1], x.shape[1]), drawn_columns(x)
    figure, axes = _panels(on, len(drawn), 1.4)
    for column, ax in zip(drawn, axes, strict=True):
        ax.set_title(wrapped(names[column], 22), fontsize=SMALL, parse_math=False)
        of_samples = [values[:, column] for values in samples.values()]
        ax.tick_params(labelsize=SMALL - 1)
        if levels and levels[column]:
            draw_shares(ax, x[:, column], of_samples, list(samples), levels[column])
            continue
        bins = scale.mean[column] + scale.deviation[column] * np.linspace(-_RANGE, _RANGE, 29)
        ax.stairs(_density(x[:, column], bins), bins, fill=True, color="0.82", label="data")
        for number, (name, values) in enumerate(zip(samples, of_samples, strict=True)):
            colour, dash = line_style(number)
            ax.stairs(_density(values, bins), bins, color=colour, linestyle=dash, linewidth=1.2, label=name)
        ax.locator_params(axis="x", nbins=4)
        ax.xaxis.get_offset_text().set_fontsize(SMALL - 1)
        ax.set_yticks([])
    legend_below(figure, axes[0], _note(x, names, drawn))
    return root(figure)


def _constant(x: Table) -> Mask:
    """Which columns hold at most one distinct value, (columns,)."""
    seen = np.where(np.isnan(x), np.inf, x).min(0), np.where(np.isnan(x), -np.inf, x).max(0)
    return np.asarray(seen[0] >= seen[1], bool)


def _note(x: Table, names: Sequence[str], drawn: Sequence[int]) -> str:
    """Which columns have no panel, and why; nothing where all have one."""
    constant = [] if _constant(x).all() else [name for name, one in zip(names, _constant(x), strict=True) if one]
    notes = []
    if constant:
        more = ", …" if len(constant) > _MOST_NAMED else ""
        notes.append(f"Constant, not drawn: {', '.join(constant[:_MOST_NAMED])}{more}")
    if len(drawn) + len(constant) < x.shape[1]:
        notes.append(f"The first {len(drawn)} of {x.shape[1]} columns")
    return "\n".join(wrapped(note, 26 * min(_ACROSS, len(drawn))) for note in notes)


def _draw_scatter(ax: Axes, cells: Table, answers: Sequence[Table], marked: Mask) -> None:
    middle = float(np.nanmean(cells))
    ax.axline((middle, middle), slope=1, color="0.6", linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    for number, found in enumerate(answers):
        colour, marker = point_style(number)
        style: dict[str, Any] = {"color": colour, "markeredgewidth": 0, "rasterized": True}
        ax.plot(cells[~marked], found[~marked], ".", markersize=2.5, alpha=0.5, **style)
        ax.plot(cells[marked], found[marked], marker, markersize=4, alpha=0.9, **style)
    _same_range(ax)


def _quality(cells: Table, found: Table, marked: Mask, has_levels: bool) -> str:
    """R² or accuracy of all rows and, where some are marked, of those held out."""

    def measured(rows: Mask) -> str:
        if has_levels:
            return f"{accuracy(cells[rows], found[rows]):.0%}"
        r2 = _r2(cells[rows], found[rows])
        return "–" if math.isnan(r2) else f"{r2:.2f}".replace("-", "−")

    name = "R²" if not has_levels else "accuracy of all rows" if marked.any() else "accuracy"
    everything = measured(np.ones(len(cells), bool))
    and_ = "\n" if has_levels else ", "
    return f"{name} {everything}{and_}held out {measured(marked)}" if marked.any() else f"{name} {everything}"


def _panels(on: Figure | SubFigure | None, n: int, height: float) -> tuple[Figure | SubFigure, list[Axes]]:
    across = min(_ACROSS, n)
    figure = canvas(on, 1.9 * across, height * math.ceil(n / across) + 0.4)
    return figure, axes_grid(figure, n, across)


def _add_key(figure: Figure | SubFigure, ax: Axes, systems: Sequence[str], marked: bool, note: str) -> None:
    """A legend of the systems, if there are several, and of the two sizes of markers; a note above it."""
    for number, name in enumerate(systems if len(systems) > 1 else []):
        colour, marker = point_style(number)
        ax.plot([], [], marker, color=colour, markersize=4, markeredgewidth=0, label=name)
    if marked:
        ax.plot([], [], "o", color="0.3", markersize=4, label="large: held out, not learned from")
    if len(systems) > 1 or marked or note:
        legend_below(figure, ax, note)


def _density(values: Table, bins: Table) -> Table:
    """A histogram with area 1; values beyond the bins are counted in the first and the last."""
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
    ax.xaxis.get_offset_text().set_fontsize(SMALL - 1)
    ax.yaxis.get_offset_text().set_visible(False)  # the same as that of x, and would push the title off the figure
