"""A figure on disk, and what single models show of themselves in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from wiseale.evaluation.encoded import Encoded
from wiseale.figures.style import save_figure

Models = Mapping[str, Encoded]
"""System name → one of its runs, with the same unseen rows for all."""


@dataclass(frozen=True)
class Drawn:
    """A figure on disk (PNG; an SVG lies beside it) and what it shows."""

    path: Path
    caption: str


def drawn(figure: Figure, figures: Path, name: str, caption: str) -> Drawn:
    """Save a figure under its name."""
    return Drawn(save_figure(figure, figures / name), caption)
