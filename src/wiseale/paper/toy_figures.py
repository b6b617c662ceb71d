"""Figures of the bound analysis: the paper's Figure 4, and the optima of the bound."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from wiseale.experiments.figures import LINE_STYLES, LineStyle
from wiseale.figures.style import DASHES, PALETTE, SMALL, new_figure
from wiseale.paper.toy_values import NO_OVERLAP_GAP, MinimumRow, ObjectiveOptimumRow, OptimumRow, TwoGaussiansRow

_POSTERIOR, _PRIOR, _AGGREGATE = PALETTE[1], "#003A5C", PALETTE[5]


def figure4(curve: Sequence[TwoGaussiansRow], minima: Sequence[MinimumRow]) -> Figure:
    """The paper's Figure 4: (a)-(c) two posteriors at three sigmas, (d) the prior terms against sigma.

    (c) is where the paper's bound has risen to AEVB's own minimum.
    """
    lowest = {row.quantity: row for row in minima}
    aevb, jensen = lowest["aevb"], lowest["jensen"]
    widths = {"a": aevb.sigma, "b": jensen.sigma, "c": jensen.under_aevb_from}
    names = {"a": "AEVB's minimum", "b": "WiSE-ALE's minimum", "c": "acceptable"}
    figure = new_figure(7.0, 5.6)
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(5, 6)).flat
    axes = above.subplots(1, len(widths), sharey=True)
    for ax, (letter, sigma) in zip(axes, widths.items(), strict=True):
        _draw_two_posteriors(ax, sigma)
        ax.set_title(f"({letter}) {names[letter]}, σ = {sigma:.2f}", fontsize=SMALL + 1)
    axes[0].set_ylabel("density", fontsize=SMALL)
    axes[0].set_ylim(0, None)  # after all panels are drawn, because they share the y axis
    above.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=SMALL, frameon=False
    )
    ax = below.subplots()
    for name in ("aevb", "exact", "jensen", "bhattacharyya", "pairwise_kl"):
        _draw_curve(ax, LINE_STYLES[name], [row.sigma for row in curve], [getattr(row, name) for row in curve])
    ax.set_ylim(-0.2, 1.6)
    _label(ax, "(d) prior terms of two posteriors at μ = ±1", "σ", "nats")
    for letter, sigma in widths.items():
        ax.axvline(sigma, color="0.5", linewidth=0.8, linestyle=(0, (4, 3)))
        ax.text(sigma, 1.0, f" {letter}", transform=ax.get_xaxis_transform(), va="top", fontsize=9)
    ax.legend(fontsize=SMALL, frameon=False, loc="upper right")
    return figure


def _draw_two_posteriors(ax: Axes, sigma: float) -> None:
    """Draw posteriors at ±1 (red, dashed), their average (light blue) and the prior (dark blue)."""
    z = np.linspace(-4, 4, 801)
    parts = [_normal(z, mu, sigma) for mu in (-1.0, 1.0)]
    ax.plot(z, np.mean(parts, 0), color=_AGGREGATE, linewidth=3.2, label="aggregate posterior")
    ax.plot(z, _normal(z, 0, 1), color=_PRIOR, linewidth=1.5, label="prior N(0, 1)")
    for label, part in zip(("posteriors", None), parts, strict=True):
        ax.plot(z, part, color=_POSTERIOR, linestyle="--", linewidth=1.2, label=label)
    ax.set_xlabel("z", fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)


def _normal(z: npt.NDArray[np.float64], mu: float, sigma: float) -> npt.NDArray[np.float64]:
    return np.asarray(np.exp(-0.5 * ((z - mu) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi)))


def optimum_figure(optima: Sequence[OptimumRow], objective: Sequence[ObjectiveOptimumRow]) -> Figure:
    """Bound and exact value at the bound's minimum; their gap at the minimum of the whole objective."""
    figure = new_figure(7.0, 3.1)
    left, right = figure.subplots(1, 2)
    for number, (d, group) in enumerate(groupby(optima, lambda row: row.latent_dim)):
        rows = list(group)
        sizes = [row.batch_size for row in rows]
        for name, dash, marker in (("bound", "-", "os"[number]), ("exact", "--", "^v"[number])):
            style = LineStyle(f"{name}, d = {d}", PALETTE[number], dash, marker)
            _draw_curve(left, style, sizes, [getattr(row, name) for row in rows])
    left.loglog()
    _tick_powers(left.xaxis, 4)
    _tick_powers(left.yaxis, 10)
    _label(left, "at the bound's minimum", "posteriors M", "nats")
    for number, (m, some) in enumerate(groupby(objective, lambda row: row.batch_size), 4):
        points = list(some)
        style = LineStyle(f"bound − exact, d = 1, M = {m}", PALETTE[number], DASHES[number], "os^vDPX"[number])
        _draw_curve(right, style, [row.x_sigma for row in points], [row.gap for row in points])
    label = "½(1 − ln 2): all apart, or all collapsed"
    right.axhline(NO_OVERLAP_GAP, color="0.35", linewidth=0.9, linestyle=(0, (1, 2)), label=label)
    right.semilogx()
    _tick_powers(right.xaxis, 10)
    _label(right, "at the objective's minimum", "x_sigma of the likelihood", "bound − exact (nats)")
    handles: list[Artist] = [handle for ax in (left, right) for handle in ax.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=SMALL, frameon=False)
    return figure


def _draw_curve(ax: Axes, style: LineStyle, x: Sequence[float], y: Sequence[float]) -> None:
    ax.plot(
        x,
        y,
        color=style.colour,
        linestyle=style.dash,
        linewidth=style.width,
        marker=style.marker,
        markersize=4,
        markevery=max(1, len(x) // 8),
        label=style.label,
    )


def _tick_powers(axis: Axis, base: int) -> None:
    """On a logarithmic axis, ticks at powers of ``base``, written as plain numbers."""
    axis.set_major_locator(LogLocator(base))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def _label(ax: Axes, title: str, x: str, y: str) -> None:
    ax.set_title(title, fontsize=SMALL + 1)
    ax.set_xlabel(x, fontsize=SMALL)
    ax.set_ylabel(y, fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    ax.grid(alpha=0.25)
