"""Labelled rows of small images or signals: reconstructions, prior samples, interpolations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from wiseale.figures.mosaic import Values
from wiseale.figures.style import SMALL, canvas, line_style, root, wrapped


def image_rows(x: Mapping[str, Values], on: Figure | SubFigure | None = None) -> Figure:
    """Draw one row per name: images (n, C, H, W) in [0, 1], or signals (n, C, L)."""
    n = max(len(values) for values in x.values())
    first = next(iter(x.values()))
    height = 0.75 * first.shape[2] / first.shape[3] if first.ndim == 4 else 0.55
    figure = canvas(on, 0.75 * n + 1.7, height * len(x) + 0.2)
    grid = figure.subplots(len(x), n, squeeze=False)
    for row, (name, values) in enumerate(x.items()):
        for column in range(n):
            ax = grid[row][column]
            ax.set_xticks([])
            ax.set_yticks([])
            ax.spines[:].set_visible(False)
            if column < len(values):
                _draw(ax, values[column], row if len(x) > 1 else None)
            if values.ndim == 3:  # one y range per column, so that amplitudes can be compared
                ax.set_ylim(*_limits(x.values(), column))
        grid[row][0].set_ylabel(wrapped(name), fontsize=SMALL, rotation=0, ha="right", va="center", parse_math=False)
    return root(figure)


def _limits(rows: Iterable[Values], column: int) -> tuple[float, float]:
    shown = [values[column] for values in rows if column < len(values)]
    low, high = min(float(v.min()) for v in shown), max(float(v.max()) for v in shown)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def _draw(ax: Axes, value: Values, row: int | None) -> None:
    """Draw an image, or a signal in the colour of its row; without a row, each channel has its own."""
    if value.ndim == 3:
        pixels = np.clip(value.transpose(1, 2, 0), 0, 1)
        grey = pixels.shape[2] != 3
        ax.imshow(pixels[:, :, 0] if grey else pixels, cmap="gray" if grey else None, vmin=0, vmax=1)
    else:
        for number, channel in enumerate(value):
            ax.plot(channel, color=line_style(number if row is None else row)[0], linewidth=0.8)
