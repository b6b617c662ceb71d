"""Latent traversals of a table: how each column changes while one unit of the code varies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.image import AxesImage

from wiseale.figures.columns import Table, column_names
from wiseale.figures.style import SMALL, canvas, root

_CELL = 0.42  # inches: room for a number of five characters
_LIMIT = 2.0  # standard deviations at the ends of the colour scale


@dataclass(frozen=True)
class TableTraversal:
    """Decoded rows (units, steps, columns) in the user's units, and a name per unit; the number of steps is odd."""

    units: tuple[str, ...]
    values: Table

    @property
    def changes(self) -> Table:
        """The difference of each step from the middle one, (units, steps, columns), in the user's units."""
        middle = self.values.shape[1] // 2
        difference: Table = self.values - self.values[:, middle : middle + 1]
        return difference


def column_traversals(
    systems: Mapping[str, TableTraversal],
    deviation: Table,
    columns: Sequence[str] = (),
    on: Figure | SubFigure | None = None,
) -> Figure:
    """One panel per system: a row per column of the table, a block of steps per unit of the code.

    Colour is the change from the middle step in standard deviations of the column, ``deviation`` (columns,); the
    numbers at both ends of a block are the change in the user's units.
    """
    names = column_names(columns, len(deviation))
    first = next(iter(systems.values()))
    blocks, steps = len(first.units), first.values.shape[1]
    widest = max(max(map(len, names)) * 0.075, 0.4)
    height = 0.2 * len(names) + 0.75
    width = _CELL * (blocks * steps + 0.5 * (blocks - 1)) + widest + 1.1
    figure = canvas(on, width, height * len(systems))
    fits = figure.bbox.width / root(figure).dpi > 0.8 * width  # else the numbers would run into each other
    axes = list(figure.subplots(len(systems), 1, squeeze=False).flat)
    for ax, (name, one) in zip(axes, systems.items(), strict=True):
        shown = _draw(ax, one, deviation, names, fits)
        ax.set_title(name, fontsize=SMALL + 1, parse_math=False)
    bar = figure.colorbar(shown, ax=axes, pad=0.02, fraction=0.05, aspect=12)
    bar.set_label("change\n(standard deviations)", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL - 1)
    return root(figure)


def _draw(ax: Axes, one: TableTraversal, deviation: Table, names: Sequence[str], numbers: bool) -> AxesImage:
    changes = one.changes[:, :, : len(names)]
    standardised = changes / np.where(deviation > 0, deviation, 1.0)[: len(names)]
    blocks, steps = changes.shape[:2]
    colours = Normalize(-_LIMIT, _LIMIT), matplotlib.colormaps["RdBu_r"]
    for block in range(blocks):
        left = block * (steps + 0.5)
        shown = ax.imshow(
            standardised[block].T,
            norm=colours[0],
            cmap=colours[1],
            extent=(left, left + steps, len(names), 0),
            aspect="auto",
            interpolation="nearest",
        )
        for step in (0, steps - 1) if numbers else ():
            for row in range(len(names)):
                dark = abs(standardised[block, step, row]) > 0.7 * _LIMIT
                ax.text(
                    left + step + 0.5,
                    row + 0.5,
                    signed(float(changes[block, step, row])),
                    ha="center",
                    va="center",
                    fontsize=SMALL - 1,
                    color="white" if dark else "black",
                )
    ax.set_xlim(0, blocks * (steps + 0.5) - 0.5)
    ax.set_ylim(len(names), 0)
    middles = [block * (steps + 0.5) + steps / 2 for block in range(blocks)]
    ax.set_xticks(middles, [f"{unit}, low to high" if numbers else unit for unit in one.units], fontsize=SMALL)
    ax.set_yticks(np.arange(len(names)) + 0.5, list(names), fontsize=SMALL, parse_math=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return shown


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
