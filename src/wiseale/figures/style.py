"""One look for all figures: legible at column width, distinguishable without colour vision."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

# Okabe & Ito (2008): eight colours that stay apart under every common colour-vision deficiency.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches; pyplot and its global state are not involved."""
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, stem: Path) -> Path:
    """Write ``stem.png`` and ``stem.svg``; the path of the PNG."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
    png = stem.with_suffix(".png")
    figure.savefig(png, dpi=150)
    return png
