"""Figures of the bound analysis: panels of curves with one style per estimate, Figure 4, and the optima."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from wiseale.experiments.figures import LINE_STYLES, LineStyle
from wiseale.figures.style import DASHES, PALETTE, SMALL, new_figure
from wiseale.paper.bounds.optimum import NO_OVERLAP_GAP, ObjectiveOptimumRow, OptimumRow
from wiseale.paper.bounds.two_gaussians import MinimumRow, TwoGaussiansRow

Scale = Literal["linear", "log"]


def numbered_style(number: int, label: str) -> LineStyle:
    """The style of the n-th curve of a family."""
    return LineStyle(label, PALETTE[number], DASHES[number], "os^vDPX"[number])


@dataclass(frozen=True)
class Curve:
    """A line through the points (x, y), with a shaded band from ``low`` to ``high`` if given."""

    style: LineStyle
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class Panel:
    """Curves that share one pair of axes; ``level`` is the height and label of a thin horizontal line.

    On logarithmic axes the ticks are powers of ``x_base`` (x) and of 10 (y).
    """

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    x_scale: Scale = "log"
    y_scale: Scale = "linear"
    x_base: int = 10
    y_range: tuple[float | None, float | None] = (None, None)
    level: tuple[float, str] | None = None


def curve_panels(panels: Sequence[Panel], width: float = 7.0, height: float = 3.1, legend_columns: int = 3) -> Figure:
    """Draw panels side by side, with one legend below; sizes in inches."""
    figure = new_figure(width, height)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    handles: dict[str, Artist] = {}
    for ax, panel in zip(axes, panels, strict=True):
        draw_panel(ax, panel)
        if ax is not axes[0] and panel.y_label == panels[0].y_label:
            ax.set_ylabel("")
        handles |= {label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(
        handles=list(handles.values()),
        loc="outside lower center",
        ncols=legend_columns,
        fontsize=SMALL,
        frameon=False,
    )
    return figure


def draw_panel(ax: Axes, panel: Panel) -> None:
    """Draw the curves of one panel."""
    for curve in panel.curves:
        style = curve.style
        ax.plot(
            curve.x,
            curve.y,
            color=style.colour,
            linestyle=style.dash,
            linewidth=style.width,
            marker=style.marker,
            markersize=4,
            markevery=max(1, len(curve.x) // 8),
            label=style.label,
        )
        if curve.low:
            ax.fill_between(curve.x, curve.low, curve.high, color=style.colour, alpha=0.15, linewidth=0)
    if panel.level is not None:
        ax.axhline(panel.level[0], color="0.35", linewidth=0.9, linestyle=(0, (1, 2)), label=panel.level[1])
    ax.set_xscale(panel.x_scale)
    ax.set_yscale(panel.y_scale)
    for axis, scale, base in ((ax.xaxis, panel.x_scale, panel.x_base), (ax.yaxis, panel.y_scale, 10)):
        if scale == "log":
            axis.set_major_locator(LogLocator(base))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_locator(NullLocator())
    ax.set_ylim(*panel.y_range)
    ax.set_title(panel.title, fontsize=SMALL + 1)
    ax.set_xlabel(panel.x_label, fontsize=SMALL)
    ax.set_ylabel(panel.y_label, fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    ax.grid(alpha=0.25)


Points = npt.NDArray[np.float64]

POSTERIOR_COLOUR, PRIOR_COLOUR, AGGREGATE_COLOUR = PALETTE[1], "#003A5C", PALETTE[5]


@dataclass(frozen=True)
class Mixture:
    """One-dimensional posteriors and the title of their panel; ``letter`` marks their sigma in the panel of curves."""

    letter: str
    title: str
    mu: Sequence[float]
    sigma: Sequence[float]


def two_gaussians(mixtures: Sequence[Mixture], curves: Panel) -> Figure:
    """Panels a, b, … of densities above a wide panel of curves against sigma, where letters mark the panels' sigmas."""
    figure = new_figure(7.0, 5.6)
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(5, 6)).flat
    axes = above.subplots(1, len(mixtures), sharey=True, squeeze=False)[0]
    for ax, mixture in zip(axes, mixtures, strict=True):
        draw_mixture(ax, mixture)
    axes[0].set_ylabel("density", fontsize=SMALL)
    axes[0].set_ylim(0, None)  # after all panels are drawn, because they share the y axis
    above.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=SMALL, frameon=False
    )
    ax = below.subplots()
    draw_panel(ax, curves)
    for mixture in mixtures:
        ax.axvline(mixture.sigma[0], color="0.5", linewidth=0.8, linestyle=(0, (4, 3)))
        ax.text(mixture.sigma[0], 1.0, f" {mixture.letter}", transform=ax.get_xaxis_transform(), va="top", fontsize=9)
    ax.legend(fontsize=SMALL, frameon=False, loc="upper right")
    return figure


def draw_mixture(ax: Axes, mixture: Mixture) -> None:
    """Draw the posteriors (red, dashed), their average (light blue) and the prior (dark blue)."""
    z = np.linspace(-4, 4, 801)
    parts = [_normal(z, mu, sigma) for mu, sigma in zip(mixture.mu, mixture.sigma, strict=True)]
    ax.plot(z, np.mean(parts, 0), color=AGGREGATE_COLOUR, linewidth=3.2, label="aggregate posterior")
    ax.plot(z, _normal(z, 0, 1), color=PRIOR_COLOUR, linewidth=1.5, label="prior N(0, 1)")
    for number, part in enumerate(parts):
        label = None if number else "posteriors"
        ax.plot(z, part, color=POSTERIOR_COLOUR, linestyle="--", linewidth=1.2, label=label)
    ax.set_title(f"({mixture.letter}) {mixture.title}", fontsize=SMALL + 1)
    ax.set_xlabel("z", fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)


def _normal(z: Points, mu: float, sigma: float) -> Points:
    return np.asarray(np.exp(-0.5 * ((z - mu) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi)))


def figure4(curve: Sequence[TwoGaussiansRow], minima: Sequence[MinimumRow]) -> Figure:
    """The paper's Figure 4; (c) is where the paper's bound has risen to AEVB's own minimum."""
    lowest = {row.quantity: row for row in minima}
    aevb, jensen = lowest["aevb"], lowest["jensen"]
    widths = (
        ("a", "AEVB's minimum", aevb.sigma),
        ("b", "WiSE-ALE's minimum", jensen.sigma),
        ("c", "acceptable", jensen.under_aevb_from),
    )
    mixtures = [Mixture(letter, f"{name}, σ = {s:.2f}", (-1.0, 1.0), (s, s)) for letter, name, s in widths]
    sigma = [row.sigma for row in curve]
    names = ("aevb", "exact", "jensen", "bhattacharyya", "pairwise_kl")
    curves = [Curve(LINE_STYLES[name], sigma, [getattr(row, name) for row in curve]) for name in names]
    title = "(d) prior terms of two posteriors at μ = ±1"
    return two_gaussians(mixtures, Panel(title, "σ", "nats", curves, "linear", y_range=(-0.2, 1.6)))


def optimum_figure(optima: Sequence[OptimumRow], objective: Sequence[ObjectiveOptimumRow]) -> Figure:
    """Bound and exact value at the bound's minimum; their gap at the minimum of the whole objective."""
    curves = []
    for number, (d, group) in enumerate(groupby(optima, lambda row: row.latent_dim)):
        part = list(group)
        bound = LineStyle(f"bound, d = {d}", PALETTE[number], "-", "os"[number])
        exact = LineStyle(f"exact, d = {d}", PALETTE[number], "--", "^v"[number])
        curves.append(Curve(bound, [row.batch_size for row in part], [row.bound for row in part]))
        curves.append(Curve(exact, [row.batch_size for row in part], [row.exact for row in part]))
    left = Panel("at the bound's minimum", "posteriors M", "nats", curves, y_scale="log", x_base=4)
    curves = []
    for number, (m, some) in enumerate(groupby(objective, lambda row: row.batch_size)):
        sizes = list(some)
        style = numbered_style(4 + number, f"bound − exact, d = 1, M = {m}")
        curves.append(Curve(style, [row.x_sigma for row in sizes], [row.gap for row in sizes]))
    level = (NO_OVERLAP_GAP, "½(1 − ln 2): all apart, or all collapsed")
    right = Panel(
        "at the objective's minimum", "x_sigma of the likelihood", "bound − exact (nats)", curves, level=level
    )
    return curve_panels([left, right])
