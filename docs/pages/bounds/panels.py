"""Panels of curves with one style per estimate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from wiseale.experiments.figures import LineStyle
from wiseale.figures.style import DASHES, PALETTE, SMALL, new_figure

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
        _draw_panel(ax, panel)
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


def _draw_panel(ax: Axes, panel: Panel) -> None:
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
