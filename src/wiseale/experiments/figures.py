"""Comparisons between systems over seeds: rate and distortion, and the aggregate KL between its bounds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from wiseale.figures.style import PALETTE, SMALL, Dash, legend_below, new_figure, point_style, wrapped


@dataclass(frozen=True)
class LineStyle:
    """Label and style of a curve; colour, dashes and marker each identify it on their own."""

    label: str
    colour: str
    dash: Dash
    marker: str
    width: float = 1.5


LINE_STYLES = {
    "tightest": LineStyle("tightest upper bound", "0.82", "-", "", 5.0),
    "exact": LineStyle("exact", PALETTE[6], "-", "", 2.0),
    "aevb": LineStyle("mean AEVB KL", PALETTE[4], (0, (7, 2)), "D"),
    "jensen": LineStyle("jensen (the paper's)", PALETTE[0], "-", "o"),
    "bhattacharyya": LineStyle("bhattacharyya", PALETTE[1], "--", "s"),
    "pairwise_kl": LineStyle("pairwise_kl (lower)", PALETTE[2], "-.", "^"),
    "second_jensen": LineStyle("second Jensen step", PALETTE[3], ":", "v"),
    "mc": LineStyle("mc: standard error, one draw each", PALETTE[5], (0, (3, 1, 1, 1)), "x"),
}


@dataclass(frozen=True)
class Sandwich:
    """Estimates of one aggregate KL, nats; ``aevb`` is the mean KL of the single posteriors, also an upper bound."""

    lower: float
    mc: float
    mc_standard_error: float
    jensen: float
    bhattacharyya: float
    aevb: float


_STYLE_NAMES = {"lower": "pairwise_kl", "bhattacharyya": "bhattacharyya", "jensen": "jensen", "aevb": "aevb"}
_BAND: dict[str, Any] = {"color": "0.82", "linewidth": 7, "solid_capstyle": "butt"}
_CENTRE: dict[str, Any] = {"color": "black", "marker": "|", "markersize": 11, "capsize": 2}


def bound_sandwich(systems: Mapping[str, Sandwich]) -> Figure:
    """One row per system: values on the left, bound minus Monte Carlo value on the right.

    A grey band reaches from the lower bound (or 0, if larger) to the tightest upper bound.
    """
    names = [wrapped(name) for name in systems]
    tallest = max(name.count("\n") + 1 for name in names)
    figure = new_figure(7.0, max(0.34, 0.15 * tallest) * len(systems) + 1.35)
    values, errors = figure.subplots(1, 2, sharey=True)
    for row, one in enumerate(systems.values()):
        band = (max(0.0, one.lower), min(one.jensen, one.bhattacharyya))
        for ax, origin in ((values, 0.0), (errors, one.mc)):
            ax.plot([end - origin for end in band], [row, row], **_BAND)
            for name in _STYLE_NAMES:
                if ax is values or name != "aevb":  # aevb − mc is the mutual information, which dwarfs the other errors
                    ax.plot(getattr(one, name) - origin, row, **_mark(name))
            ax.errorbar(one.mc - origin, row, xerr=2 * one.mc_standard_error, **_CENTRE)
    values.set_yticks(range(len(systems)), names, parse_math=False)
    values.set_ylim(len(systems) - 0.4, -0.6)
    if max(one.aevb for one in systems.values()) > 10:
        values.set_xscale("symlog", linthresh=1)
        values.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    errors.axvline(0, color="0.35", linewidth=0.8)
    ends = [end - one.mc for one in systems.values() for end in (one.lower, one.jensen, one.bhattacharyya)]
    reach = 1.15 * max(0.05, *map(abs, ends))  # set by the bounds: a Monte Carlo error bar may be many times as long
    errors.set_xlim(-reach, reach)
    for ax, label in ((values, "aggregate KL (nats)"), (errors, "bound − Monte Carlo value (nats)")):
        ax.set_xlabel(label, fontsize=SMALL)
        ax.tick_params(labelsize=SMALL)
        ax.grid(axis="x", alpha=0.25)
    _add_legend(figure, values)
    return figure


def _mark(name: str) -> dict[str, Any]:
    style = LINE_STYLES[_STYLE_NAMES[name]]
    hollow = {"markersize": 5, "markerfacecolor": "none", "markeredgewidth": 1.3, "linestyle": "none"}
    return {"color": style.colour, "marker": style.marker, **hollow}


def _add_legend(figure: Figure, ax: Axes) -> None:
    labels = {name: LINE_STYLES[style].label for name, style in _STYLE_NAMES.items()}
    keys: list[Any] = [ax.plot([], [], **_mark(name), label=label)[0] for name, label in labels.items()]
    keys.append(ax.errorbar([], [], xerr=[], label="Monte Carlo ± 2 standard errors", **_CENTRE))
    figure.legend(handles=keys, loc="outside lower center", ncols=3, fontsize=SMALL, frameon=False)


Point = tuple[float, float]


@dataclass(frozen=True)
class SystemPoint:
    """A system in the plane: the mean over its runs, and each run; a line joins systems of one family."""

    family: Hashable
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
