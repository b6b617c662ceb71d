"""Figures saved with a caption, and the encoded models that they are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from wiseale.evaluation.encoded import Encoded
from wiseale.figures.style import save_figure

Models = Mapping[str, Encoded]
"""System name → the encoded rows of one of its runs; all systems encode the same unseen rows."""


@dataclass(frozen=True)
class SavedFigure:
    """A figure on disk (PNG, with an SVG of the same name) and its caption."""

    path: Path
    caption: str


def save_with_caption(figure: Figure, figures: Path, name: str, caption: str) -> SavedFigure:
    """Save a figure as ``figures/name`` (PNG and SVG)."""
    return SavedFigure(save_figure(figure, figures / name), caption)
