"""A 2-D latent space as a grid of decoded codes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wiseale.figures.mosaic import Values, mosaic
from wiseale.figures.style import PALETTE, SMALL, panels, wrapped


def manifold_grid(systems: Mapping[str, Values]) -> Figure:
    """One panel per system: a decoded grid (rows, columns, *x_shape) of images (C, H, W) in [0, 1] or signals (C, L).

    Row 0 has the smallest z2 and is at the bottom; column 0 has the smallest z1 and is at the left.
    """
    figure, axes = panels(len(systems), 3, 2.35, 2.55)
    for ax, (name, grid) in zip(axes, systems.items(), strict=True):
        if grid.ndim == 5:
            ax.imshow(mosaic(grid[::-1], gap=0), interpolation="nearest")
        else:
            _draw_signals(ax, grid)
        ax.set_title(wrapped(name), fontsize=SMALL + 1, parse_math=False)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel("z1 →", fontsize=SMALL)
        ax.set_ylabel("z2 →", fontsize=SMALL)
    return figure


def _draw_signals(ax: Axes, grid: Values) -> None:
    """Draw every signal in its own cell, all on the same scale."""
    rows, columns = grid.shape[:2]
    low, high = float(grid.min()), float(grid.max())
    scale = 0.9 / (high - low or 1.0)
    time = np.linspace(0.05, 0.95, grid.shape[-1])
    for row, column in np.ndindex(rows, columns):
        for channel in grid[row, column]:
            ax.plot(column + time, row + 0.05 + (channel - low) * scale, color=PALETTE[0], linewidth=0.5)
    ax.set_xlim(0, columns)
    ax.set_ylim(0, rows)
    ax.set_box_aspect(1)
