"""The sweep of the prior's weight: reconstruction error against the aggregate KL, a line for each system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from wiseale.figures.style import SMALL, legend_below, panels, point_style

Points = Sequence[tuple[float, float]]
Sweep = Mapping[str, Mapping[str, Points]]
"""By system and weight: aggregate KL and reconstruction error of every run."""

_LABELS = (
    (-6, -11, "right"),
    (6, 5, "left"),
    (6, -11, "left"),
)  # where a system's weights are written: points to the right, up


def weight_sweeps(sweeps: Mapping[str, Sweep]) -> Figure:
    """One panel per dataset; a marker for the mean at each weight, small ones for single runs, the weight beside it."""
    figure, axes = panels(len(sweeps), 2 if len(sweeps) == 4 else 3, 3.3, 2.9)
    for ax, (title, sweep) in zip(axes, sweeps.items(), strict=True):
        for number, (system, by_weight) in enumerate(sweep.items()):
            _draw(ax, number, system, by_weight)
        ax.set_title(title, fontsize=SMALL + 2)
        ax.set_xscale("symlog", linthresh=0.1)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.ticklabel_format(axis="y", useOffset=False)
        ax.margins(0.2)
        ax.set_xlabel("aggregate KL (nats)")
        ax.set_ylabel("reconstruction (nats)")
        ax.grid(alpha=0.25)
    legend_below(figure, axes[0])
    return figure


def _draw(ax: Axes, number: int, system: str, by_weight: Mapping[str, Points]) -> None:
    colour, marker = point_style(number)
    means = np.array([np.mean(runs, axis=0) for runs in by_weight.values()])
    ax.plot(*means.T, color=colour, marker=marker, markersize=6, linewidth=1.0, label=system)
    for runs in by_weight.values():
        ax.plot(*np.transpose(runs), marker, color=colour, alpha=0.45, markersize=3)
    across, up, side = _LABELS[number % len(_LABELS)]
    for weight, mean in zip(by_weight, means, strict=True):
        ax.annotate(weight, mean, (across, up), textcoords="offset points", ha=side, fontsize=SMALL, color=colour)
