"""The aggregate KL of each system between its analytic lower and upper bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from wiseale.figures.bounds import LINE_STYLES
from wiseale.figures.style import SMALL, new_figure, wrapped


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
