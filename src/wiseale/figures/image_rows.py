"""Rows of small pictures with a name each: reconstructions, prior samples, interpolations, traversals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from wiseale.figures.style import PALETTE, new_figure

Values = npt.NDArray[np.float32]


def rows_of(x: Mapping[str, Values], columns: list[str] | None = None) -> Figure:
    """A row per name; x is (n, C, H, W) in [0, 1] or signals (n, C, L)."""
    n = max(len(values) for values in x.values())
    first = next(iter(x.values()))
    height = 0.95 if first.ndim == 4 else 0.7
    figure = new_figure(0.95 * n + 1.6, height * len(x) + 0.35)
    grid = figure.subplots(len(x), n, squeeze=False)
    for row, (name, values) in enumerate(x.items()):
        for column in range(n):
            ax = grid[row][column]
            ax.set_xticks([])
            ax.set_yticks([])
            for side in ax.spines.values():
                side.set_visible(False)
            if column < len(values):
                _draw(ax, values[column], PALETTE[row % len(PALETTE)])
            if values.ndim == 3:  # signals are compared by height too
                ax.set_ylim(*_limits(x.values(), column))
            if row == 0 and columns:
                ax.set_title(columns[column], fontsize=7)
        grid[row][0].set_ylabel(name, fontsize=8, rotation=0, ha="right", va="center")
    return figure


def _limits(rows: Iterable[Values], column: int) -> tuple[float, float]:
    shown = [values[column] for values in rows if column < len(values)]
    low, high = min(float(v.min()) for v in shown), max(float(v.max()) for v in shown)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def _draw(ax: object, value: Values, colour: str) -> None:
    if value.ndim == 3:
        pixels = np.clip(value.transpose(1, 2, 0), 0, 1)
        grey = pixels.shape[2] == 1
        ax.imshow(pixels[:, :, 0] if grey else pixels, cmap="gray" if grey else None, vmin=0, vmax=1)  # type: ignore[attr-defined]
    else:
        for channel in value:
            ax.plot(channel, color=colour, linewidth=0.8)  # type: ignore[attr-defined]
