"""Codes in the latent space, coloured by a factor of the rows, and posteriors in its plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, PathCollection
from matplotlib.dates import AutoDateFormatter, AutoDateLocator
from matplotlib.figure import Figure, SubFigure

from wiseale.figures.factor import MISSING, OTHER, Factor
from wiseale.figures.style import MARKERS, PALETTE, SMALL, colour_bar, legend_below, panels, scale_circle, wrapped

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
    def marked(self) -> Mask:
        """The rows to mark: the unseen ones, unless all rows are unseen."""
        if self.unseen is None or self.unseen.all():
            return np.zeros(len(self.codes), bool)
        return self.unseen


def latent_map(systems: Mapping[str, PlaneCodes], factor: Factor | None = None) -> Figure:
    """One scatter plot per system, with a dashed circle of radius 2 for scale; unseen rows have a black edge."""
    size = 1.25 if len(systems) == 1 else 1.0
    figure, axes = panels(len(systems), 3, 2.6 * size, 2.7 * size)
    points: PathCollection | None = None
    for ax, (system, plane) in zip(axes, systems.items(), strict=True):
        points = draw_map(ax, plane, factor, system)
    add_key(figure, axes, points, factor)
    return figure


def draw_map(ax: Axes, plane: PlaneCodes, factor: Factor | None = None, title: str = "") -> PathCollection | None:
    """Draw one system's codes; returns the points where they are coloured on a scale.

    The panel's title also says why two of more units are shown.
    """
    lines = [wrapped(title)] if title else []
    if plane.most_active_of > len(plane.units):
        lines.append(f"the two most active of {plane.most_active_of} units")
    ax.set_title("\n".join(lines), fontsize=SMALL + 1 if title else SMALL, parse_math=False)
    ax.tick_params(labelsize=SMALL - 1)
    ax.set_xlabel(f"z{plane.units[0] + 1}", fontsize=SMALL)
    if len(plane.units) == 1:
        _draw_histogram(ax, plane.codes[:, 0], factor)
        return None
    ax.set_ylabel(f"z{plane.units[1] + 1}", fontsize=SMALL)
    points = None
    if factor is not None and factor.numbers is not None:
        points = _draw_scale(ax, plane, factor, factor.numbers)
    else:
        _draw_classes(ax, plane, factor)
    if plane.marked.any() and (factor is None or points is not None):
        ax.scatter([], [], facecolors="none", label="not learned from", **_edge(plane))
    ax.add_patch(scale_circle())
    ax.set_aspect("equal", adjustable="datalim")
    return points


def add_key(
    figure: Figure | SubFigure, axes: Sequence[Axes], points: PathCollection | None, factor: Factor | None
) -> None:
    """A colour bar, or a legend of the classes below the figure, and of the mark of unseen rows."""
    if points is not None and factor is not None:
        days = AutoDateLocator()  # type: ignore[no-untyped-call]
        dated: dict[str, Any] = {"ticks": days, "format": AutoDateFormatter(days)}  # type: ignore[no-untyped-call]
        settings = {"shrink": 0.8, "pad": 0.01} | (dated if factor.dates else {})
        colour_bar(figure, points, list(axes), factor.name, **settings)
    title = "" if factor is None or points is not None else factor.name
    if not axes[0].get_legend_handles_labels()[0]:
        return
    if title and any(np.size(edges.get_offsets()) for ax in axes for edges in ax.collections):
        title += "\n(black edge: not learned from)"
    room = 2 if title else 0
    legend_below(figure, axes[0], title, title_size=SMALL, title_lines=room, most_columns=10, markerscale=1.5)


def _edge(plane: PlaneCodes) -> dict[str, Any]:
    few = len(plane.codes) <= _FEW
    return {"s": 16 if few else 8, "edgecolors": "black", "linewidths": 0.7 if few else 0.45, "zorder": 4}


def _draw_scale(ax: Axes, plane: PlaneCodes, factor: Factor, numbers: Floats) -> PathCollection:
    colours = "twilight" if factor.circular else "viridis"
    edge = {"linewidths": 0.3, "edgecolors": "0.4"} if factor.circular else {"linewidths": 0}  # twilight has white
    _draw_points(ax, plane, factor.missing, _REST[MISSING], factor.rest.get(MISSING))
    x, y = plane.codes[~factor.missing].T
    points = ax.scatter(x, y, c=numbers[~factor.missing], s=5, cmap=colours, rasterized=True, **edge)
    ax.scatter(*plane.codes[plane.marked].T, facecolors="none", **_edge(plane))
    return points


def _draw_classes(ax: Axes, plane: PlaneCodes, factor: Factor | None) -> None:
    """Plot the classes in eight rounds, a part of each per round, so that no class covers all others.

    Below them lie the rows of no drawn class, in grey, and above them the rows that were not learned from.
    """
    marked = plane.marked
    styles: list[tuple[Mask, tuple[str, str], str | None]]
    if factor is None:
        styles, rest = [(np.ones(len(marked), bool), (MARKERS[0], PALETTE[0]), None)], []
    else:
        looks = [(MARKERS[k % 8], _CLASS_COLOURS[k % 10]) for k in range(len(factor.classes))]
        styles = [(factor.class_of == k, looks[k], name) for k, name in enumerate(factor.classes)]
        rest = [(factor.class_of == place, _REST[place], name) for place, name in factor.rest.items()]
    for rows, style, _ in rest:
        _draw_points(ax, plane, rows & ~marked, style)
    for turn in range(_TURNS):
        for rows, style, _ in styles:
            _draw_points(ax, plane, np.flatnonzero(rows & ~marked)[turn::_TURNS], style)
    for rows, (marker, colour), name in [*styles, *rest]:
        ax.scatter(*plane.codes[rows & marked].T, color=colour, marker=marker, **_edge(plane))
        if name is not None:
            _draw_points(ax, plane, np.zeros(0, int), (marker, colour), name)  # the legend's entry, in this order


def _draw_points(
    ax: Axes, plane: PlaneCodes, rows: Mask | Rows, style: tuple[str, str], name: str | None = None
) -> None:
    marker, colour = style
    size = 4.0 if len(plane.codes) <= _FEW else 2.5
    x, y = plane.codes[rows].T
    ax.plot(x, y, marker, color=colour, label=name, markersize=size, markeredgewidth=0, alpha=0.8, rasterized=True)


def _draw_histogram(ax: Axes, codes: Floats, factor: Factor | None) -> None:
    """A code of one unit: its distribution, one outline for each class, and dotted ones for rows of no drawn class."""
    bins = list(np.histogram_bin_edges(codes, 30))
    classes = factor if factor is not None and factor.numbers is None else None
    ax.hist(codes, bins, color="0.88" if classes else PALETTE[0])
    if classes:
        for number, name in enumerate(classes.classes):
            colour = _CLASS_COLOURS[number % 10]
            ax.hist(codes[classes.class_of == number], bins, histtype="step", color=colour, label=name)
        for place, name in classes.rest.items():
            dash = ":" if place == OTHER else "--"
            ax.hist(codes[classes.class_of == place], bins, histtype="step", color="0.35", linestyle=dash, label=name)
    ax.set_ylabel("rows", fontsize=SMALL)


PlanePosteriors = tuple[Floats, Floats | None]
"""mu (n, 2) and sigma (n, 2); sigma is None for a deterministic encoder."""


def posterior_contours(systems: Mapping[str, PlanePosteriors]) -> Figure:
    """One panel per system: the aggregate density as shading, the posterior means, and their 1- and 2-σ ellipses.

    A deterministic encoder has means only. Each panel has its own limits; a dashed circle of radius 2 gives the scale.
    """
    figure, axes = panels(len(systems), 4, 2.4, 2.6)
    for ax, (name, (mu, sigma)) in zip(axes, systems.items(), strict=True):
        limit = max(3.2, 1.1 * float(np.abs(mu).max()))
        ax.plot(mu[:, 0], mu[:, 1], ".", color=PALETTE[1], markersize=4 if sigma is None else 2)
        if sigma is not None:
            grid = np.linspace(-limit, limit, 161)
            ax.contourf(grid, grid, _mixture(grid, mu, sigma), levels=14, cmap="Blues")
            edge: dict[str, Any] = {"facecolors": "none", "edgecolors": PALETTE[1]}
            place: dict[str, Any] = {"units": "xy", "offsets": mu, "offset_transform": ax.transData}
            for times, width in ((1, 0.9), (2, 0.4)):
                across, up = (2 * times * sigma).T
                ellipses = EllipseCollection(across, up, np.zeros(len(mu)), linewidths=width, **edge, **place)
                ax.add_collection(ellipses)
        ax.add_patch(scale_circle())
        ax.set_title(wrapped(name), fontsize=SMALL + 1, parse_math=False)
        ax.set(aspect="equal", xlim=(-limit, limit), ylim=(-limit, limit))
        ax.tick_params(labelsize=SMALL - 1)
    return figure


def _mixture(grid: Floats, mu: Floats, sigma: Floats) -> Floats:
    """Square root of the aggregate density on the grid; without the root narrow peaks would hide the rest."""
    density = np.zeros((len(grid), len(grid)))
    for centre, width in zip(mu.astype(float), sigma.astype(float), strict=True):
        x, y = (np.exp(-0.5 * ((grid - c) / w) ** 2) / w for c, w in zip(centre, width, strict=True))
        density += np.outer(y, x)
    return np.asarray(np.sqrt(density / len(mu)))
