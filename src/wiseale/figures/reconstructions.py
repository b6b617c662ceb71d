"""Inputs beside what each system makes of them (the paper's Figure 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from wiseale.figures.style import PALETTE, new_figure

Signals = npt.NDArray[np.float32]


def signal_reconstructions(x: Signals, x_hat: Mapping[str, Signals], titles: Sequence[str] = ()) -> Figure:
    """A row for each system, a column for each signal (n, length): the input in grey, the reconstruction over it."""
    n = len(x)
    figure = new_figure(1.7 * n + 1.0, 1.15 * len(x_hat) + 0.4)
    grid = figure.subplots(len(x_hat), n, sharex=True, sharey="col", squeeze=False)
    for row, (name, signals) in enumerate(x_hat.items()):
        for column in range(n):
            ax = grid[row][column]
            ax.plot(x[column], color="0.65", linewidth=2.2)
            ax.plot(signals[column], color=PALETTE[row % len(PALETTE)], linewidth=1.2)
            ax.set_xticks([])
            ax.tick_params(labelsize=7)
            if row == 0 and titles:
                ax.set_title(titles[column], fontsize=8)
        grid[row][0].set_ylabel(name, fontsize=8, rotation=0, ha="right", va="center")
    return figure
