"""A table's columns side by side: numbers in the user's units, categories as bars, missing cells left out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from wiseale.figures.style import SMALL, axes_grid, canvas, legend_below, line_style, point_style, root, wrapped

MAX_COLUMNS = 16
MAX_LEVELS = 8
_ACROSS = 4
_MOST_NAMED = 12
_RANGE = 3.5  # standard deviations shown on either side of the mean
_LONGEST = 12  # characters of a level's name

Table = npt.NDArray[np.floating]
"""Cells, NaN where one is missing; of categories the positions of their levels."""
Mask = npt.NDArray[np.bool_]
Levels = Sequence[Sequence[str]]
"""The levels of each column, none for numbers; empty where all are numbers."""


def deviations(x: Table) -> Table:
    """Standard deviation of the observed cells of each column of x (n, columns); 1 for a constant or empty column."""
    deviation = np.nanstd(_filled(x), 0)
    return np.where(deviation > 0, deviation, 1.0)


def _filled(x: Table) -> Table:
    return np.where(np.isnan(x).all(0), 0.0, x)  # columns of which none of these rows has a cell


def column_names(columns: Sequence[str], n: int, most: int = MAX_COLUMNS) -> list[str]:
    """The first ``most`` of n names; columns without a name are numbered from 1."""
    return list(columns or [f"column {i + 1}" for i in range(n)])[:most]


def panel_columns(x: Table) -> list[int]:
    """The columns that have a panel: the first ``MAX_COLUMNS`` that are not constant, or all if every one is.

    >>> panel_columns(np.array([[1.0, 7.0, np.nan], [2.0, 7.0, 3.0], [2.0, np.nan, 4.0]]))
    [0, 2]
    """
    constant = _constant(x)
    return [column for column in range(x.shape[1]) if constant.all() or not constant[column]][:MAX_COLUMNS]


def _constant(x: Table) -> Mask:
    """Which columns hold at most one distinct value, (columns,)."""
    lowest, highest = np.where(np.isnan(x), np.inf, x).min(0), np.where(np.isnan(x), -np.inf, x).max(0)
    return np.asarray(lowest >= highest, bool)


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
    names, places = column_names(columns, x.shape[1], x.shape[1]), panel_columns(x)
    figure, axes = _panels(on, len(places), 2.1)
    marked = np.zeros(len(x), bool) if unseen is None else unseen
    scatters = [not (levels and levels[column]) for column in places]
    for place, (column, ax) in enumerate(zip(places, axes, strict=True)):
        cells, guesses = x[:, column], [values[:, column] for values in x_hat.values()]
        title = wrapped(names[column], 22)
        if scatters[place]:
            _draw_scatter(ax, cells, guesses, marked)
            if not any(scatters[place - place % _ACROSS : place]):
                ax.set_ylabel("reconstructed", fontsize=SMALL)
            if not any(scatters[place + _ACROSS :: _ACROSS]):
                ax.set_xlabel("observed", fontsize=SMALL)
        else:
            _draw_accuracies(ax, cells, guesses, levels[column])
        if len(guesses) == 1:
            title += f"\n{_quality(cells, guesses[0], marked, not scatters[place])}"
        ax.set_title(title, fontsize=SMALL, parse_math=False)
    for number, name in enumerate(x_hat if len(x_hat) > 1 else ()):
        colour, marker = point_style(number)
        axes[0].plot([], [], marker, color=colour, markersize=4, markeredgewidth=0, label=name)
    if marked.any() and any(scatters):
        axes[0].plot([], [], "o", color="0.3", markersize=4, label="large: held out, not learned from")
    legend_below(figure, axes[0], _note(x, names, places))
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
    names, places = column_names(columns, x.shape[1], x.shape[1]), panel_columns(x)
    figure, axes = _panels(on, len(places), 1.4)
    mean, deviation = np.nanmean(_filled(x), 0), deviations(x)
    for column, ax in zip(places, axes, strict=True):
        ax.set_title(wrapped(names[column], 22), fontsize=SMALL, parse_math=False)
        ax.tick_params(labelsize=SMALL - 1)
        cells, of_samples = x[:, column], {name: values[:, column] for name, values in samples.items()}
        ax.set_yticks([])
        if levels and levels[column]:
            _draw_shares(ax, cells, of_samples, levels[column])
            continue
        bins = mean[column] + deviation[column] * np.linspace(-_RANGE, _RANGE, 29)
        ax.stairs(_density(cells, bins), bins, fill=True, color="0.82", label="data")
        for number, (name, values) in enumerate(of_samples.items()):
            colour, dash = line_style(number)
            ax.stairs(_density(values, bins), bins, color=colour, linestyle=dash, linewidth=1.2, label=name)
        ax.locator_params(axis="x", nbins=4)
        ax.xaxis.get_offset_text().set_fontsize(SMALL - 1)
    legend_below(figure, axes[0], _note(x, names, places))
    return root(figure)


def draw_counts(ax: Axes, cells: Table, levels: Sequence[str]) -> None:
    """One bar per level: how many cells have it."""
    most_frequent = _frequent_levels(cells, levels)
    heights = [int((cells == level).sum()) for level in most_frequent]
    ax.bar(np.arange(len(heights)), heights, 0.8, color=line_style(0)[0])
    _name_levels(ax, most_frequent, levels)


def _panels(on: Figure | SubFigure | None, n: int, height: float) -> tuple[Figure | SubFigure, list[Axes]]:
    across = min(_ACROSS, n)
    figure = canvas(on, 1.9 * across, height * math.ceil(n / across) + 0.4)
    return figure, axes_grid(figure, n, across)


def _note(x: Table, names: Sequence[str], places: Sequence[int]) -> str:
    """Which columns have no panel, and why; nothing where all have one."""
    constant = [] if _constant(x).all() else [name for name, same in zip(names, _constant(x), strict=True) if same]
    notes = []
    if constant:
        more = ", …" if len(constant) > _MOST_NAMED else ""
        notes.append(f"Constant, not drawn: {', '.join(constant[:_MOST_NAMED])}{more}")
    if len(places) + len(constant) < x.shape[1]:
        notes.append(f"The first {len(places)} of {x.shape[1]} columns")
    return "\n".join(wrapped(note, 26 * min(_ACROSS, len(places))) for note in notes)


def _draw_scatter(ax: Axes, cells: Table, guesses: Sequence[Table], marked: Mask) -> None:
    middle = float(np.nanmean(cells))
    ax.axline((middle, middle), slope=1, color="0.6", linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    for number, guess in enumerate(guesses):
        colour, marker = point_style(number)
        style: dict[str, Any] = {"color": colour, "markeredgewidth": 0, "rasterized": True}
        ax.plot(cells[~marked], guess[~marked], ".", markersize=2.5, alpha=0.5, **style)
        ax.plot(cells[marked], guess[marked], marker, markersize=4, alpha=0.9, **style)
    ends = np.sort([*ax.get_xlim(), *ax.get_ylim()])[[0, -1]]
    ax.set(xlim=ends, ylim=ends, box_aspect=1)
    ax.locator_params(nbins=4)
    ax.tick_params(labelsize=SMALL - 1)
    ax.xaxis.get_offset_text().set_fontsize(SMALL - 1)
    ax.yaxis.get_offset_text().set_visible(False)  # the same as that of x, and would push the title off the figure


def _quality(cells: Table, guess: Table, marked: Mask, has_levels: bool) -> str:
    """R² or accuracy of all rows and, where some are marked, of those held out."""

    def of_rows(rows: Mask) -> str:
        truth, answer = cells[rows & ~np.isnan(cells)], guess[rows & ~np.isnan(cells)]
        if has_levels:
            return f"{_share(np.round(answer) == truth):.0%}"
        total = ((truth - truth.mean()) ** 2).sum() if len(truth) else 0
        return f"{1 - ((truth - answer) ** 2).sum() / total:.2f}".replace("-", "−") if total > 0 else "–"

    everything = of_rows(np.ones(len(cells), bool))
    if not marked.any():
        return f"{'accuracy' if has_levels else 'R²'} {everything}"
    name, separator = ("accuracy of all rows", "\n") if has_levels else ("R²", ", ")
    return f"{name} {everything}{separator}held out {of_rows(marked)}"


def _density(values: Table, bins: Table) -> Table:
    """A histogram with area 1; values beyond the bins are counted in the first and the last."""
    return np.histogram(values[~np.isnan(values)].clip(bins[0], bins[-1]), bins, density=True)[0]


def _draw_shares(ax: Axes, cells: Table, samples: Mapping[str, Table], levels: Sequence[str]) -> None:
    """Grey bars: the share of each level among the observed cells; coloured outlines: among each system's samples."""
    most_frequent = _frequent_levels(cells, levels)
    x = np.arange(len(most_frequent))

    def shares(cells: Table) -> list[float]:
        observed = np.round(cells[~np.isnan(cells)])
        return [_share(observed == level) for level in most_frequent]

    ax.bar(x, shares(cells), 0.8, color="0.82", label="data")
    for number, (name, values) in enumerate(samples.items()):
        colour, dash = line_style(number)
        width = 0.8 * (1 - number / (2 * len(samples)))  # outlines of several systems stand inside each other
        bars: dict[str, Any] = {"fill": False, "edgecolor": colour, "linestyle": dash, "linewidth": 1.2}
        ax.bar(x, shares(values), width, label=name, **bars)
    _name_levels(ax, most_frequent, levels)


def _draw_accuracies(ax: Axes, cells: Table, guesses: Sequence[Table], levels: Sequence[str]) -> None:
    """One bar per level and system: the share of the level's cells that are reconstructed as this level."""
    most_frequent = _frequent_levels(cells, levels)
    width = 0.8 / len(guesses)
    for number, guess in enumerate(guesses):
        hits = [_share(np.round(guess[cells == level]) == level) for level in most_frequent]
        places = np.arange(len(hits)) + (number + 0.5) * width - 0.4
        ax.bar(places, hits, 0.9 * width, color=line_style(number)[0])
    _name_levels(ax, most_frequent, levels)
    ax.set(ylim=(0, 1), box_aspect=1)
    ax.set_yticks([0, 1], ["0", "100 %"])


def _share(hits: Mask) -> float:
    return float(hits.mean()) if len(hits) else 0.0


def _frequent_levels(cells: Table, levels: Sequence[str]) -> list[int]:
    """The most frequent levels, at most 8, in their own order."""
    counts = np.bincount(cells[~np.isnan(cells)].astype(int), minlength=len(levels))
    return sorted(int(level) for level in np.argsort(-counts, kind="stable")[:MAX_LEVELS])


def _name_levels(ax: Axes, places: Sequence[int], levels: Sequence[str]) -> None:
    names = [levels[level] if len(levels[level]) <= _LONGEST else f"{levels[level][:_LONGEST]}…" for level in places]
    steep = sum(map(len, names)) > 18
    style: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if steep else {}
    ax.set_xticks(range(len(places)), names, fontsize=SMALL - 1, parse_math=False, **style)
    ax.tick_params(axis="x", length=0, pad=1)
    ax.tick_params(axis="y", labelsize=SMALL - 1)
