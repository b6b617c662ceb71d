"""Scatter plots of codes in the latent space, coloured by a factor of the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.dates import AutoDateFormatter, AutoDateLocator
from matplotlib.figure import Figure, SubFigure

from wiseale.figures.factor import MISSING, OTHER, Factor
from wiseale.figures.style import (
    MARKERS,
    PALETTE,
    SMALL,
    disable_math,
    legend_columns,
    panels,
    root,
    scale_circle,
    wrapped,
)

_TURNS = 8

# Petroff (2021): ten colours that stay distinct with colour-vision deficiency, ranked by a survey of aesthetics.
_CLASS_COLOURS = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"),
)

# Rows that belong to no drawn class, lighter and darker than the two greys among the classes.
_REST = {OTHER: (".", "0.8"), MISSING: ("X", "0.35")}

_FEW = 500  # up to so many points are drawn large

Floats = npt.NDArray[np.floating]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class PlaneCodes:
    """Codes in the plane of two latent units, (n, 2), and the indices of those units; of a 1-D code, (n, 1).

    ``unseen`` (n,) marks the rows that were not learned from. ``most_active_of`` is the number of units among which
    these two were chosen because their codes vary most, and 0 where they were not chosen so.
    """

    codes: Floats
    units: tuple[int, ...]
    unseen: Mask | None = None
    most_active_of: int = 0

    @property
    def why_these_units(self) -> str:
        """What a reader has to know of the choice of the units, if anything.

        >>> PlaneCodes(np.zeros((1, 2)), (1, 2), most_active_of=8).why_these_units
        'the two most active of 8 units'
        """
        return f"the two most active of {self.most_active_of} units" if self.most_active_of > len(self.units) else ""

    @property
    def marked(self) -> Mask:
        """The rows to mark: the unseen ones, unless all rows are unseen."""
        if self.unseen is None or self.unseen.all():
            return np.zeros(len(self.codes), bool)
        return self.unseen


def latent_map(systems: Mapping[str, PlaneCodes], factor: Factor | None = None) -> Figure:
    """One scatter plot per system, with a dashed circle of radius 2 for scale; unseen rows have a black edge."""
    size = 1.25 if len(systems) == 1 else 1.0
    figure, axes = panels(len(systems), 3, 2.6 * size, 2.7 * size)
    shaded: PathCollection | None = None
    for ax, (system, mapped) in zip(axes, systems.items(), strict=True):
        shaded = draw_map(ax, mapped, factor, system)
    add_key(figure, axes, shaded, factor)
    return figure


def draw_map(ax: Axes, mapped: PlaneCodes, factor: Factor | None = None, title: str = "") -> PathCollection | None:
    """Draw one system's codes; returns the points where they are coloured on a scale.

    The panel's title also says why two of more units are shown.
    """
    lines = [line for line in (wrapped(title), mapped.why_these_units) if line]
    ax.set_title("\n".join(lines), fontsize=SMALL + 1 if title else SMALL, parse_math=False)
    ax.tick_params(labelsize=SMALL - 1)
    ax.set_xlabel(f"z{mapped.units[0] + 1}", fontsize=SMALL)
    if len(mapped.units) == 1:
        _draw_histogram(ax, mapped.codes[:, 0], factor)
        return None
    ax.set_ylabel(f"z{mapped.units[1] + 1}", fontsize=SMALL)
    shaded = None
    if factor is not None and factor.numbers is not None:
        shaded = _draw_scale(ax, mapped, factor, factor.numbers)
    else:
        _draw_classes(ax, mapped, factor)
    if mapped.marked.any() and (factor is None or shaded is not None):
        ax.scatter([], [], facecolors="none", label="not learned from", **_edge(mapped))
    ax.add_patch(scale_circle())
    ax.set_aspect("equal", adjustable="datalim")
    return shaded


def add_key(
    figure: Figure | SubFigure, axes: Sequence[Axes], shaded: PathCollection | None, factor: Factor | None
) -> None:
    """A colour bar, or a legend of the classes below the figure, and of the mark of unseen rows."""
    if shaded is not None and factor is not None:
        days = AutoDateLocator()  # type: ignore[no-untyped-call]
        dated: dict[str, Any] = {"ticks": days, "format": AutoDateFormatter(days)}  # type: ignore[no-untyped-call]
        bar = figure.colorbar(shaded, ax=list(axes), shrink=0.8, pad=0.01, **(dated if factor.dates else {}))
        bar.set_label(factor.name, fontsize=SMALL, parse_math=False)
        bar.ax.tick_params(labelsize=SMALL - 1)
    handles, names = axes[0].get_legend_handles_labels()
    if not handles:
        return
    title = None if factor is None or shaded is not None else factor.name
    if title is not None and any(np.size(points.get_offsets()) for ax in axes for points in ax.collections):
        title += "\n(black edge: not learned from)"
    inches = figure.bbox.width / root(figure).dpi
    columns = min(10, legend_columns(names, inches))
    if isinstance(figure, Figure):
        lines = math.ceil(len(names) / columns) + (2 if title else 0)
        figure.set_size_inches(inches, figure.get_figheight() + lines * 1.45 * SMALL / 72)
    legend = figure.legend(
        handles,
        names,
        title=title,
        loc="outside lower center",
        ncols=columns,
        fontsize=SMALL,
        title_fontsize=SMALL,
        markerscale=1.5,
        frameon=False,
    )
    legend.get_title().set_multialignment("center")
    disable_math(legend)


def _edge(mapped: PlaneCodes) -> dict[str, Any]:
    few = len(mapped.codes) <= _FEW
    return {"s": 16 if few else 8, "edgecolors": "black", "linewidths": 0.7 if few else 0.45, "zorder": 4}


def _draw_scale(ax: Axes, mapped: PlaneCodes, factor: Factor, numbers: Floats) -> PathCollection:
    colours = "twilight" if factor.circular else "viridis"
    edge = {"linewidths": 0.3, "edgecolors": "0.4"} if factor.circular else {"linewidths": 0}  # twilight has white
    _draw_points(ax, mapped, factor.missing, _REST[MISSING], factor.rest.get(MISSING))
    x, y = mapped.codes[~factor.missing].T
    shaded = ax.scatter(x, y, c=numbers[~factor.missing], s=5, cmap=colours, rasterized=True, **edge)
    ax.scatter(*mapped.codes[mapped.marked].T, facecolors="none", **_edge(mapped))
    return shaded


def _draw_classes(ax: Axes, mapped: PlaneCodes, factor: Factor | None) -> None:
    """Plot the classes in eight rounds, a part of each per round, so that no class covers all others.

    Below them lie the rows of no drawn class, in grey, and above them the rows that were not learned from.
    """
    marked = mapped.marked
    styles: list[tuple[Mask, tuple[str, str], str | None]]
    if factor is None:
        styles, rest = [(np.ones(len(marked), bool), (MARKERS[0], PALETTE[0]), None)], []
    else:
        styles = [(factor.class_of == k, _class_style(k), name) for k, name in enumerate(factor.classes)]
        rest = [(factor.class_of == place, _REST[place], name) for place, name in factor.rest.items()]
    for chosen, style, _ in rest:
        _draw_points(ax, mapped, chosen & ~marked, style)
    for turn in range(_TURNS):
        for chosen, style, _ in styles:
            _draw_points(ax, mapped, np.flatnonzero(chosen & ~marked)[turn::_TURNS], style)
    for chosen, (marker, colour), name in [*styles, *rest]:
        ax.scatter(*mapped.codes[chosen & marked].T, color=colour, marker=marker, **_edge(mapped))
        if name is not None:
            _draw_points(ax, mapped, np.zeros(0, int), (marker, colour), name)  # the legend's entry, in this order


def _draw_points(
    ax: Axes, mapped: PlaneCodes, rows: Mask | Rows, style: tuple[str, str], name: str | None = None
) -> None:
    marker, colour = style
    size = 4.0 if len(mapped.codes) <= _FEW else 2.5
    x, y = mapped.codes[rows].T
    looks: dict[str, Any] = {"markersize": size, "markeredgewidth": 0, "alpha": 0.8, "rasterized": True}
    ax.plot(x, y, marker, color=colour, label=name, **looks)


def _class_style(number: int) -> tuple[str, str]:
    return MARKERS[number % 8], _CLASS_COLOURS[number % 10]


def _draw_histogram(ax: Axes, codes: Floats, factor: Factor | None) -> None:
    """A code of one unit: its distribution, one outline for each class, and dotted ones for rows of no drawn class."""
    bins = list(np.histogram_bin_edges(codes, 30))
    outlined = factor is not None and factor.numbers is None
    ax.hist(codes, bins, color="0.88" if outlined else PALETTE[0])
    if outlined:
        assert factor is not None
        for number, name in enumerate(factor.classes):
            ax.hist(codes[factor.class_of == number], bins, histtype="step", color=_class_style(number)[1], label=name)
        for place, name in factor.rest.items():
            dotted: dict[str, Any] = {"histtype": "step", "color": "0.35", "linestyle": ":" if place == OTHER else "--"}
            ax.hist(codes[factor.class_of == place], bins, label=name, **dotted)
    ax.set_ylabel("rows", fontsize=SMALL)
