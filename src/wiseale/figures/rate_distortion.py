"""Rate and distortion: reconstruction error against the KL of the aggregate posterior from the prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from wiseale.figures.style import legend_below, new_figure, point_style

Point = tuple[float, float]


@dataclass(frozen=True)
class SystemPoint:
    """A system in the plane: the mean over its runs, and each run; a line joins systems of one family."""

    family: str
    mean: Point
    runs: Sequence[Point] = ()


def rate_distortion(
    systems: Mapping[str, SystemPoint],
    x_title: str = "aggregate KL (nats)",
    y_title: str = "reconstruction (nats)",
) -> Figure:
    """One marker per system, with small markers for its runs; lower left is better in both measures."""
    figure = new_figure(5.6, 4.0)
    ax = figure.subplots()
    for family in dict.fromkeys(one.family for one in systems.values()):
        x, y = zip(*sorted(one.mean for one in systems.values() if one.family == family), strict=True)
        ax.plot(x, y, color="0.75", linewidth=1.0, zorder=1)
    for number, (name, one) in enumerate(systems.items()):
        colour, marker = point_style(number)
        ax.plot(*one.mean, color=colour, marker=marker, linestyle="none", markersize=7, label=name, zorder=3)
        if len(one.runs) > 1:
            ax.plot(*zip(*one.runs, strict=True), marker, color=colour, alpha=0.45, markersize=3, zorder=2)
    if max(one.mean[0] for one in systems.values()) > 10:
        ax.set_xscale("symlog", linthresh=1)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.set_xlabel(x_title)
    ax.set_ylabel(y_title)
    ax.grid(alpha=0.25)
    legend_below(figure, ax)
    return figure
