"""Reconstruction against distance of the aggregate from the prior: which system pays what for which fidelity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from wiseale.figures.style import MARKERS, PALETTE, new_figure

Point = tuple[float, float]


def rate_distortion(
    families: Mapping[str, Sequence[Point]],
    labels: Mapping[str, Sequence[str]] | None = None,
    x_title: str = "aggregate KL (nats)",
    y_title: str = "reconstruction (nats)",
) -> Figure:
    """One marker per system, joined within a family (a sweep of weights); lower left is better on both counts."""
    figure = new_figure(5.2, 4.2)
    ax = figure.subplots()
    for number, (name, points) in enumerate(families.items()):
        x, y = zip(*points, strict=True)
        style = "-" if len(points) > 1 else "none"
        colour, marker = PALETTE[number % len(PALETTE)], MARKERS[number % len(MARKERS)]
        ax.plot(x, y, color=colour, marker=marker, linestyle=style, linewidth=1.2, markersize=6, label=name)
        for point, label in zip(points, (labels or {}).get(name, ()), strict=False):
            ax.annotate(label, point, textcoords="offset points", xytext=(5, 4), fontsize=7, color=colour)
    rates = [x for points in families.values() for x, _ in points]
    if max(rates) > 10 * max(min(rates), 0.1):
        ax.set_xscale("symlog", linthresh=1)
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.set_xlabel(x_title)
    ax.set_ylabel(y_title)
    ax.grid(alpha=0.25)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return figure
