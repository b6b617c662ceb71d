"""A table's columns as matrices: how each changes while one unit of the code varies, and their correlations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.image import AxesImage

from wiseale.figures.columns import Table, column_names
from wiseale.figures.decoded import Traversal
from wiseale.figures.style import SMALL, canvas, colour_bar, new_figure, root, wrapped

_CELL = 0.42  # inches: room for a number of five characters
_LETTER = 0.075  # inches of an average letter
_LIMIT = 2.0  # standard deviations at the ends of the colour scale


def column_traversals(
    systems: Mapping[str, Traversal],
    deviation: Table,
    columns: Sequence[str] = (),
    on: Figure | SubFigure | None = None,
) -> Figure:
    """One panel per system: a row per column of the table, a block of steps per unit of the code.

    Values are decoded rows (units, steps, columns) in the user's units, the number of steps is odd. Colour is the
    change from the middle step in standard deviations of the column, ``deviation`` (columns,); the numbers at both
    ends of a block are the change in the user's units.
    """
    names = column_names(columns, len(deviation))
    blocks, steps = next(iter(systems.values())).values.shape[:2]
    height = 0.2 * len(names) + 0.75
    width = _CELL * (blocks * steps + 0.5 * (blocks - 1)) + max(max(map(len, names)) * _LETTER, 0.4) + 1.1
    figure = canvas(on, width, height * len(systems))
    fits = figure.bbox.width / root(figure).dpi > 0.8 * width  # else the numbers would run into each other
    axes = list(figure.subplots(len(systems), 1, squeeze=False).flat)
    for ax, (name, system) in zip(axes, systems.items(), strict=True):
        colours = _draw_changes(ax, system, deviation, names, fits)
        ax.set_title(name, fontsize=SMALL + 1, parse_math=False)
    label = "change\n(standard deviations)"
    colour_bar(figure, colours, axes, label, pad=0.02, fraction=0.05, aspect=12)
    return root(figure)


def _draw_changes(ax: Axes, system: Traversal, deviation: Table, names: Sequence[str], numbers: bool) -> AxesImage:
    blocks, steps = system.values.shape[:2]
    changes = (system.values - system.values[:, steps // 2, None])[:, :, : len(names)]
    standardised = changes / np.where(deviation > 0, deviation, 1.0)[: len(names)]
    lefts = [block * (steps + 0.5) for block in range(blocks)]
    for block, left in enumerate(lefts):
        extent = (left, left + steps, len(names), 0)
        colours: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -_LIMIT, "vmax": _LIMIT}
        image = ax.imshow(standardised[block].T, extent=extent, aspect="auto", interpolation="nearest", **colours)
        for step in (0, steps - 1) if numbers else ():
            for row, (change, size) in enumerate(zip(changes[block, step], standardised[block, step], strict=True)):
                colour = "white" if abs(size) > 0.7 * _LIMIT else "black"
                place: dict[str, Any] = {"ha": "center", "va": "center"}
                ax.text(left + step + 0.5, row + 0.5, signed(change), fontsize=SMALL - 1, color=colour, **place)
    ax.set(xlim=(0, lefts[-1] + steps), ylim=(len(names), 0))
    units = [f"{unit}, low to high" if numbers else unit for unit in system.units]
    ax.set_xticks([left + steps / 2 for left in lefts], units, fontsize=SMALL)
    ax.set_yticks(np.arange(len(names)) + 0.5, list(names), fontsize=SMALL, parse_math=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image


def signed(value: float) -> str:
    """A change in about five characters.

    >>> signed(314.2), signed(-0.123), signed(12345.0), signed(0.00004)
    ('+314', '−0.12', '+1e4', '+4e-5')
    """
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 9999.5 or size < 0.0095:
        text = f"{size:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    else:
        text = f"{size:.0f}" if size >= 99.5 else f"{size:.2g}"
    return ("−" if value < 0 else "+") + text


def correlation_matrices(tables: Mapping[str, Table], columns: Sequence[str] = ()) -> Figure:
    """The correlation of every pair of columns, one matrix per table: the data's beside each system's samples."""
    names = column_names(columns, next(iter(tables.values())).shape[1])
    side = max(1.7, 0.19 * len(names))
    longest = max(map(len, names)) * _LETTER
    across = min(3, len(tables))
    down = math.ceil(len(tables) / across)
    figure = new_figure(side * across + longest + 0.9, (side + 0.3) * down + longest + 0.2)
    grid = figure.subplots(down, across, squeeze=False, sharey=True)
    for unused in grid.flat[len(tables) :]:
        unused.set_axis_off()
    for number, (ax, (name, values)) in enumerate(zip(grid.flat, tables.items(), strict=False)):
        image = ax.imshow(_correlation(values[:, : len(names)]), cmap="RdBu_r", vmin=-1, vmax=1)
        ax.set_title(wrapped(name), fontsize=SMALL + 1, parse_math=False)
        below = number + across < len(tables)  # a matrix with the same names
        labels = [""] * len(names) if below else names
        ax.set_xticks(range(len(names)), labels, rotation=90, fontsize=SMALL - 1, parse_math=False)
        ax.set_yticks(range(len(names)), names, fontsize=SMALL - 1, parse_math=False)
    colour_bar(figure, image, grid, "correlation", shrink=0.8, pad=0.02)
    return figure


def _correlation(x: Table) -> Table:
    """Pearson's correlation of the columns, (columns, columns); NaN, drawn white, where a column is constant.

    Each pair by the rows where both are observed.
    """

    def pair(left: Table, right: Table) -> float:
        both = ~np.isnan(left) & ~np.isnan(right)
        left, right = left[both], right[both]
        if len(left) < 2 or left.std() == 0 or right.std() == 0:
            return np.nan
        return float(np.corrcoef(left, right)[0, 1])

    return np.array([[pair(left, right) for right in x.T] for left in x.T])
