"""Scatter plots of codes in the latent space, coloured by a factor of the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure, SubFigure

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

MAX_CLASSES = 20
_TURNS = 8

# Petroff (2021): ten colours that stay distinct with colour-vision deficiency, ranked by a survey of aesthetics.
_CLASS_COLOURS = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"),
)

_FEW = 500  # up to so many points are drawn large

Floats = npt.NDArray[np.floating]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PlaneCodes:
    """Codes in the plane of two latent units, (n, 2), and the indices of those units; of a 1-D code, (n, 1).

    ``unseen`` (n,) marks the rows that were not learned from.
    """

    codes: Floats
    units: tuple[int, ...]
    unseen: Mask | None = None

    @property
    def marked(self) -> Mask:
        """The rows to mark: the unseen ones, unless all rows are unseen."""
        if self.unseen is None or self.unseen.all():
            return np.zeros(len(self.codes), bool)
        return self.unseen


@dataclass(frozen=True)
class Factor:
    """What the rows are coloured by: a name, and a value for each, (n,); ``circular`` if the values wrap around.

    With at most 20 distinct values, each is a class with its colour and marker. More numbers are drawn on a colour
    scale, which is cyclic for a circular factor; of more words, the 20 most frequent are classes.
    """

    name: str
    values: npt.NDArray[np.generic]
    circular: bool = False

    @cached_property
    def classes(self) -> list[Any]:
        """The distinct values to draw as classes; empty where the values are drawn on a colour scale."""
        kinds, counts = np.unique(self.values, return_counts=True)
        if len(kinds) > MAX_CLASSES and self.values.dtype.kind in "iuf":
            return []
        return list(np.sort(kinds[np.argsort(-counts, kind="stable")[:MAX_CLASSES]]))


def latent_map(systems: Mapping[str, PlaneCodes], factor: Factor | None = None) -> Figure:
    """One scatter plot per system, with a dashed circle of radius 2 for scale; unseen rows have a black edge."""
    size = 1.25 if len(systems) == 1 else 1.0
    figure, axes = panels(len(systems), 3, 2.6 * size, 2.7 * size)
    shaded: PathCollection | None = None
    for ax, (system, mapped) in zip(axes, systems.items(), strict=True):
        shaded = draw_map(ax, mapped, factor)
        ax.set_title(wrapped(system), fontsize=SMALL + 1, parse_math=False)
    add_key(figure, axes, shaded, factor)
    return figure


def draw_map(ax: Axes, mapped: PlaneCodes, factor: Factor | None = None) -> PathCollection | None:
    """Draw one system's codes; returns the points where they are coloured on a scale."""
    ax.tick_params(labelsize=SMALL - 1)
    ax.set_xlabel(f"z{mapped.units[0] + 1}", fontsize=SMALL)
    if len(mapped.units) == 1:
        _draw_histogram(ax, mapped.codes[:, 0], factor)
        return None
    ax.set_ylabel(f"z{mapped.units[1] + 1}", fontsize=SMALL)
    shaded = None
    if factor is not None and not factor.classes:
        shaded = _draw_scale(ax, mapped, factor)
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
        bar = figure.colorbar(shaded, ax=list(axes), shrink=0.8, pad=0.01)
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


def _draw_scale(ax: Axes, mapped: PlaneCodes, factor: Factor) -> PathCollection:
    colours = "twilight" if factor.circular else "viridis"
    edge = {"linewidths": 0.3, "edgecolors": "0.4"} if factor.circular else {"linewidths": 0}  # twilight has white
    x, y = mapped.codes.T
    shaded = ax.scatter(x, y, c=factor.values.astype(float), s=5, cmap=colours, rasterized=True, **edge)
    ax.scatter(*mapped.codes[mapped.marked].T, facecolors="none", **_edge(mapped))
    return shaded


def _draw_classes(ax: Axes, mapped: PlaneCodes, factor: Factor | None) -> None:
    """Plot the classes in eight rounds, a part of each per round, so that no class covers all others."""
    marked = mapped.marked
    kinds = [None] if factor is None else factor.classes
    of_kind = [np.ones(len(marked), bool) if factor is None else factor.values == kind for kind in kinds]
    for turn in range(_TURNS):
        for number, (kind, chosen) in enumerate(zip(kinds, of_kind, strict=True)):
            x, y = mapped.codes[chosen & ~marked][turn::_TURNS].T
            ax.plot(
                x,
                y,
                MARKERS[number % 8],
                color=PALETTE[0] if factor is None else _CLASS_COLOURS[number % 10],
                markersize=4 if len(marked) <= _FEW else 2.5,
                markeredgewidth=0,
                alpha=0.8,
                label=None if turn or factor is None else str(kind),
                rasterized=True,
            )
    for number, chosen in enumerate(of_kind):
        colour = PALETTE[0] if factor is None else _CLASS_COLOURS[number % 10]
        ax.scatter(*mapped.codes[chosen & marked].T, color=colour, marker=MARKERS[number % 8], **_edge(mapped))


def _draw_histogram(ax: Axes, codes: Floats, factor: Factor | None) -> None:
    """A code of one unit: its distribution, one outline for each class."""
    bins = list(np.histogram_bin_edges(codes, 30))
    ax.hist(codes, bins, color="0.82" if factor is not None and factor.classes else PALETTE[0])
    for number, kind in enumerate(factor.classes if factor is not None else []):
        assert factor is not None
        chosen = codes[factor.values == kind]
        ax.hist(chosen, bins, histtype="step", color=_CLASS_COLOURS[number % 10], label=str(kind))
    ax.set_ylabel("rows", fontsize=SMALL)
