"""Inputs and each system's reconstructions of them (the paper's Figure 5)."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure, SubFigure

from wiseale.figures.image_rows import image_rows
from wiseale.figures.mosaic import Values
from wiseale.figures.style import SMALL, canvas, line_style, root, wrapped


def reconstructions(x: Values, x_hat: Mapping[str, Values], on: Figure | SubFigure | None = None) -> Figure:
    """Images (n, C, H, W) in rows below the inputs (none if x has length 0), or signals (n, C, L) drawn over them."""
    if x.ndim == 3:
        return signal_reconstructions(x, x_hat, on)
    return image_rows({"input": x, **x_hat} if len(x) else x_hat, on)


def signal_reconstructions(x: Values, x_hat: Mapping[str, Values], on: Figure | SubFigure | None = None) -> Figure:
    """One row per system and one column per signal (n, C, L): the input in grey, the reconstruction over it."""
    n = len(x)
    figure = canvas(on, 0.95 * n + 1.7, 0.7 * len(x_hat) + 0.2)
    grid = figure.subplots(len(x_hat), n, sharex=True, sharey="col", squeeze=False)
    for row, (name, signals) in enumerate(x_hat.items()):
        for column in range(n):
            ax = grid[row][column]
            for number, (channel, channel_hat) in enumerate(zip(x[column], signals[column], strict=True)):
                colour = line_style(row if len(x_hat) > 1 else number)[0]  # one system: a colour for each channel
                ax.plot(channel, color="0.72", linewidth=1.8)
                ax.plot(channel_hat, color=colour, linewidth=1.0)
            ax.set_xticks([])
            ax.tick_params(labelsize=SMALL - 1)
        grid[row][0].set_ylabel(wrapped(name), fontsize=SMALL, rotation=0, ha="right", va="center", parse_math=False)
    return root(figure)
