"""Figures saved with a caption, and the encoded models that they are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from wiseale.evaluation.encoded import Encoded
from wiseale.figures.style import save_figure

Models = Mapping[str, Encoded]
"""System name → the encoded rows of one of its runs; all systems encode the same rows."""


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
