"""An overview of a dataset: a grid of images, plots of signals, or histograms of columns."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from wiseale.figures.columns import Levels
from wiseale.figures.decoded import Values, as_pixels, mosaic
from wiseale.figures.level_bars import draw_counts
from wiseale.figures.style import PALETTE, axes_grid, new_figure


def contact_sheet(x: Values, columns: tuple[str, ...] = (), levels: Levels = ()) -> Figure:
    """Draw some rows in the user's units: images (n, C, H, W), signals (n, C, L) or tables (n, features).

    ``levels`` are those of a table's categories, none for numbers; missing cells are NaN.
    """
    if x.ndim == 4:
        return image_grid(as_pixels(x))
    if x.ndim == 3:
        return _traces(x)
    return _histograms(x, columns, levels)


def image_grid(x: Values, across: int = 8) -> Figure:
    """Images in [0, 1], (n, 1 or 3, H, W), side by side."""
    down = math.ceil(len(x) / across)
    height, width = x.shape[2:]
    missing = down * across - len(x)
    full = np.concatenate([x, np.ones((missing, *x.shape[1:]), x.dtype)])
    figure = new_figure(0.9 * across, 0.9 * down * height / width)
    ax = figure.subplots()
    ax.imshow(mosaic(full.reshape(down, across, *x.shape[1:])), interpolation="nearest")
    ax.set_axis_off()
    return figure


def _traces(x: Values) -> Figure:
    shown = x[:12]
    figure = new_figure(9, 1.1 * math.ceil(len(shown) / 3) + 0.3)
    axes = axes_grid(figure, len(shown), 3)
    for ax, signal in zip(axes, shown, strict=True):
        ax.tick_params(labelsize=7)
        for channel, values in enumerate(signal):
            ax.plot(values, linewidth=1, color=PALETTE[channel % len(PALETTE)])
    return figure


def _histograms(x: Values, columns: tuple[str, ...], levels: Levels) -> Figure:
    shown = min(16, x.shape[1])
    figure = new_figure(9, 1.4 * math.ceil(shown / 4) + 0.3)
    axes = list(figure.subplots(math.ceil(shown / 4), 4, squeeze=False).flat)
    for column, ax in enumerate(axes):
        if column >= shown:
            ax.set_axis_off()
            continue
        ax.tick_params(labelsize=7)
        ax.set_title(columns[column] if columns else f"column {column}", fontsize=8, parse_math=False)
        cells = x[~np.isnan(x[:, column]), column]
        if levels and levels[column]:
            draw_counts(ax, cells, levels[column])
        else:
            ax.hist(cells, bins=40, color=PALETTE[0])
            ax.locator_params(axis="x", nbins=5)
            ax.ticklabel_format(axis="x", scilimits=(-3, 5))
            ax.xaxis.get_offset_text().set_fontsize(7)
    return figure
