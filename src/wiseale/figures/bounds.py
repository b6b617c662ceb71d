"""Bounds on the aggregate KL and their errors: curves with one style per estimate, and a map of the tightest bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from wiseale.figures.style import DASHES, PALETTE, SMALL, Dash, new_figure

Scale = Literal["linear", "log"]


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


def tightest_map(
    ratios: Sequence[float],
    dimensions: Sequence[int],
    jensen: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    bhattacharyya: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    mean_aevb: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> Figure:
    """Map of the tightest upper bound: the shade is its error, the letter names it.

    Errors are arrays (dimensions, ratios), nats. A frame marks cells where the paper's bound is above the mean AEVB KL,
    an upper bound that needs no sum over pairs.
    """
    figure = new_figure(7.0, 3.3)
    ax = figure.subplots()
    per_dimension = np.minimum(jensen, bhattacharyya) / np.asarray(dimensions)[:, None]
    shown = ax.imshow(np.clip(per_dimension, 0, None), cmap="Greys", aspect="auto", origin="lower", vmin=0, vmax=0.16)
    for row, column in np.ndindex(*jensen.shape):
        letter = "J" if jensen[row, column] < bhattacharyya[row, column] else "B"
        colour = "white" if per_dimension[row, column] > 0.09 else "black"
        ax.text(column, row, letter, ha="center", va="center", fontsize=SMALL, color=colour)
        if jensen[row, column] > mean_aevb[row, column]:
            corner = (column - 0.44, row - 0.44)
            ax.add_patch(Rectangle(corner, 0.88, 0.88, fill=False, edgecolor=PALETTE[1], linewidth=1.3))
    step = max(1, (len(ratios) - 1) // 6)
    ax.set_xticks(range(0, len(ratios), step), [f"{ratio:.3g}" for ratio in ratios[::step]])
    ax.set_yticks(range(len(dimensions)), [str(d) for d in dimensions])
    ax.set_xlabel("separation: spread of the means / σ", fontsize=SMALL)
    ax.set_ylabel("latent dimension", fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    bar = figure.colorbar(shown, ax=ax, pad=0.01)
    bar.set_label("error of the tightest upper bound\n(nats per dimension)", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    ax.set_title(
        "J: jensen is tighter   B: bhattacharyya is tighter   frame: jensen is above the mean AEVB KL",
        fontsize=SMALL,
    )
    return figure
