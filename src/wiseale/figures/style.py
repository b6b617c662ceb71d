"""One look for all figures: legible at column width, distinguishable without colour vision."""

from __future__ import annotations

import math
import re
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import Circle

Dash = str | tuple[int, tuple[int, ...]]

# Okabe & Ito (2008): eight colours that stay apart under every common colour-vision deficiency.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

SMALL = 8  # points; the figures are drawn at the width of a text column or two, so this is its size on paper

_ON_WHITE = PALETTE[:7]  # yellow is lost as a thin line


def line_look(number: int) -> tuple[str, Dash]:
    """Colour and dashes of the n-th line; 7 and 8 have no common factor, so 56 lines differ."""
    return _ON_WHITE[number % 7], DASHES[number % 8]


def point_look(number: int) -> tuple[str, str]:
    """Colour and marker of the n-th kind of point; 56 differ, and the colour is that of the n-th line."""
    return _ON_WHITE[number % 7], MARKERS[number % 8]


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches; pyplot and its global state are not involved."""
    return Figure(figsize=(width, height), layout="constrained")


def panels(n: int, across: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """n panels of this size in inches, at most so many in a row."""
    across = min(n, across)
    down = math.ceil(n / across)
    figure = new_figure(width * across, height * down)
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for unused in axes[n:]:
        unused.set_axis_off()
    return figure, axes[:n]


def wrapped(name: str, width: int = 26) -> str:
    """A name in lines of about so many characters, broken after spaces, commas and colons."""
    lines = [""]
    for piece in re.findall(r"[^ ,:]*[ ,:]?", name):
        if lines[-1] and len(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def scale_circle() -> Circle:
    """A dashed circle of radius 2 around the origin, which holds 86 % of N(0, I): the scale of a latent plane."""
    return Circle((0, 0), 2, fill=False, edgecolor="0.15", linewidth=0.8, linestyle=(0, (4, 3)), zorder=5)


def write_plainly(legend: Legend) -> None:
    """Names are names: a dollar sign in one starts no formula."""
    for text in (legend.get_title(), *legend.get_texts()):
        text.set_parse_math(False)


def legend_below(figure: Figure, ax: Axes) -> None:
    """The legend of an axes under the figure, which grows by its height, in as many columns as the names allow."""
    handles, names = ax.get_legend_handles_labels()
    width, height = figure.get_size_inches()
    points = max(map(len, names)) * 0.62 * SMALL + 42  # a letter's usual width, and the sample with its gaps
    columns = max(1, min(len(names), int(72 * width / points)))
    figure.set_size_inches(width, height + math.ceil(len(names) / columns) * 1.45 * SMALL / 72)
    legend = figure.legend(handles, names, loc="outside lower center", ncols=columns, fontsize=SMALL, frameon=False)
    write_plainly(legend)


def save_figure(figure: Figure, stem: Path) -> Path:
    """Write ``stem.png`` and ``stem.svg``; the path of the PNG. The same figure gives the same bytes."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    png = stem.with_suffix(".png")
    figure.savefig(png, dpi=150)
    figure.set_layout_engine("none")  # everything is in its place now: the second drawing need not look for it again
    with matplotlib.rc_context({"svg.hashsalt": "wiseale"}):  # else ids are random
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
    return png
