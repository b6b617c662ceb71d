"""The common style of all figures: legible at the width of a text column, distinct without colour vision."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Circle

from wiseale.platform.atomic_files import replacing

Dash = str | tuple[int, tuple[int, ...]]

# Okabe & Ito (2008): eight colours that stay distinct with every common colour-vision deficiency.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

SMALL = 8  # points, on paper too: figures are drawn at the width of one or two text columns

_LINE_COLOURS = PALETTE[:7]  # thin yellow lines are invisible on white


def line_style(number: int) -> tuple[str, Dash]:
    """Colour and dashes of the n-th line; 7 colours and 8 dash patterns give 56 different lines."""
    return _LINE_COLOURS[number % 7], DASHES[number % 8]


def point_style(number: int) -> tuple[str, str]:
    """Colour and marker of the n-th kind of point; 56 differ, and the n-th line has the same colour."""
    return _LINE_COLOURS[number % 7], MARKERS[number % 8]


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, size in inches; made without pyplot, which keeps global state."""
    return Figure(figsize=(width, height), layout="constrained")


def canvas(on: Figure | SubFigure | None, width: float, height: float) -> Figure | SubFigure:
    """Where to draw: a new figure, a given one brought to this size in inches, or a part of a figure as it is."""
    if on is None:
        return new_figure(width, height)
    if isinstance(on, Figure):
        on.set_size_inches(width, height)
    return on


def root(figure: Figure | SubFigure) -> Figure:
    """The whole figure that a part belongs to."""
    whole = figure.figure
    assert isinstance(whole, Figure)
    return whole


def axes_grid(figure: Figure | SubFigure, n: int, across: int) -> list[Axes]:
    """n panels in rows of ``across``."""
    axes = list(figure.subplots(math.ceil(n / across), across, squeeze=False).flat)
    for unused in axes[n:]:
        unused.set_axis_off()
    return axes[:n]


def panels(n: int, across: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with n panels, ``width`` by ``height`` inches each, at most ``across`` in a row."""
    across = min(n, across)
    figure = new_figure(width * across, height * math.ceil(n / across))
    return figure, axes_grid(figure, n, across)


def wrapped(name: str, width: int = 26) -> str:
    r"""Break a name after spaces, commas, colons, underscores and slashes into lines of about ``width`` characters.

    >>> wrapped("wise_ale:prior_weight=1,estimator=mc", 24)
    'wise_ale:prior_weight=1,\nestimator=mc'
    """
    lines = [""]
    for piece in re.findall(r"[^ ,:_/]*[ ,:_/]|[^ ,:_/]+$", name):
        if lines[-1] and len(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def scale_circle() -> Circle:
    """A dashed circle of radius 2 around the origin, which contains 86 % of N(0, I) in two dimensions."""
    return Circle((0, 0), 2, fill=False, edgecolor="0.15", linewidth=0.8, linestyle=(0, (4, 3)), zorder=5)


def colour_bar(figure: Figure | SubFigure, colours: ScalarMappable, axes: Any, label: str, **settings: Any) -> None:
    """A colour bar beside the axes."""
    bar = figure.colorbar(colours, ax=axes, **settings)
    bar.set_label(label, fontsize=SMALL, parse_math=False)
    bar.ax.tick_params(labelsize=SMALL - 1)


def legend_below(
    figure: Figure | SubFigure,
    ax: Axes,
    title: str = "",
    *,
    title_size: int = SMALL - 1,
    title_lines: int | None = None,
    most_columns: int | None = None,
    **settings: Any,
) -> None:
    """Add the legend of ``ax`` below the figure, in as many columns as fit, and a title above it, if there is any.

    A whole figure grows by their height. Names are shown literally: a dollar sign does not start a formula.
    """
    handles, names = ax.get_legend_handles_labels()
    if not names and not title:
        return
    width, height = figure.bbox.width / root(figure).dpi, figure.bbox.height / root(figure).dpi
    columns = min(_legend_columns(names, width), most_columns or len(names)) if names else 1
    if title_lines is None:
        title_lines = title.count("\n") + 1 if title else 0
    lines = math.ceil(len(names) / columns) + title_lines
    if isinstance(figure, Figure):
        figure.set_size_inches(width, height + lines * 1.45 * SMALL / 72)
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": columns, "fontsize": SMALL, "frameon": False}
    legend = figure.legend(handles, names, title=title or None, title_fontsize=title_size, **place, **settings)
    legend.get_title().set_multialignment("center")
    for text in (legend.get_title(), *legend.get_texts()):
        text.set_parse_math(False)


def _legend_columns(names: Sequence[str], width: float) -> int:
    """The number of columns of a legend that fits into a width in inches, with about as many entries in every line."""
    points = max(map(len, names)) * 0.62 * SMALL + 42  # average letter width, plus the line sample and gaps
    lines = math.ceil(len(names) / max(1, int(72 * width / points)))
    return math.ceil(len(names) / lines)


def save_figure(figure: Figure, stem: Path, svg: bool = True) -> Path:
    """Write ``stem.png``, and ``stem.svg`` if wanted; the same figure gives the same bytes. Returns the PNG's path."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    png = stem.with_suffix(".png")
    with replacing(png) as temporary:
        figure.savefig(temporary, dpi=150, format="png")
    if not svg:
        return png
    figure.set_layout_engine("none")  # reuse the layout computed for the PNG
    with matplotlib.rc_context({"svg.hashsalt": "wiseale"}), replacing(stem.with_suffix(".svg")) as temporary:
        figure.savefig(temporary, metadata={"Date": None}, format="svg")  # without the salt, SVG ids are random
    return png


@dataclass(frozen=True)
class SavedFigure:
    """A figure on disk (a PNG, with an SVG of the same name in reports) and its caption."""

    path: Path
    caption: str


@dataclass(frozen=True)
class Folder:
    """Where figures are saved, as PNG and, for reports, as SVG."""

    path: Path
    svg: bool = True

    def save(self, figure: Figure, name: str, caption: str) -> SavedFigure:
        """Save a figure under a name."""
        return SavedFigure(save_figure(figure, self.path / name, svg=self.svg), caption)
