"""Categories as bars: how often each level occurs in data and samples, and how often it is reconstructed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from wiseale.figures.style import SMALL, line_style

MAX_LEVELS = 8
_LONGEST = 12  # characters of a level's name

Cells = npt.NDArray[np.floating]
"""Positions of levels, NaN where a cell is missing."""


def shown_levels(cells: Cells, levels: Sequence[str]) -> list[int]:
    """The most frequent levels, at most 8, in their own order.

    >>> shown_levels(np.array([1.0, 1.0, 0.0, np.nan]), ["a", "b"])
    [0, 1]
    """
    counts = np.bincount(cells[~np.isnan(cells)].astype(int), minlength=len(levels))
    return sorted(int(level) for level in np.argsort(-counts, kind="stable")[:MAX_LEVELS])


def draw_shares(ax: Axes, cells: Cells, samples: Sequence[Cells], names: Sequence[str], levels: Sequence[str]) -> None:
    """Grey bars: the share of each level among the observed cells; coloured outlines: among each system's samples."""
    shown = shown_levels(cells, levels)
    places = np.arange(len(shown))
    ax.bar(places, _shares(cells, shown), 0.8, color="0.82", label="data")
    for number, (name, drawn) in enumerate(zip(names, samples, strict=True)):
        colour, dash = line_style(number)
        width = 0.8 * (1 - number / (2 * len(names)))  # outlines of several systems stand inside each other
        bars: dict[str, Any] = {"fill": False, "edgecolor": colour, "linestyle": dash, "linewidth": 1.2}
        ax.bar(places, _shares(drawn, shown), width, label=name, **bars)
    _name_levels(ax, shown, levels)
    ax.set_yticks([])


def draw_counts(ax: Axes, cells: Cells, levels: Sequence[str]) -> None:
    """One bar per level: how many cells have it."""
    shown = shown_levels(cells, levels)
    ax.bar(np.arange(len(shown)), [int((cells == level).sum()) for level in shown], 0.8, color=line_style(0)[0])
    _name_levels(ax, shown, levels)


def draw_accuracies(ax: Axes, cells: Cells, guesses: Sequence[Cells], levels: Sequence[str]) -> None:
    """One bar per level and system: the share of the level's cells that are reconstructed as this level."""
    shown = shown_levels(cells, levels)
    width = 0.8 / len(guesses)
    for number, found in enumerate(guesses):
        colour, _ = line_style(number)
        hits = [_share_of(np.round(found[cells == level]) == level) for level in shown]
        ax.bar(np.arange(len(shown)) + (number + 0.5) * width - 0.4, hits, 0.9 * width, color=colour)
    _name_levels(ax, shown, levels)
    ax.set_ylim(0, 1)
    ax.set_yticks([0, 1], ["0", "100 %"])
    ax.set_box_aspect(1)


def accuracy(cells: Cells, found: Cells) -> float:
    """The share of observed cells that are reconstructed as their own level."""
    seen = ~np.isnan(cells)
    return _share_of(np.round(found[seen]) == cells[seen])


def _share_of(hits: npt.NDArray[np.bool_]) -> float:
    return float(hits.mean()) if len(hits) else 0.0


def _shares(cells: Cells, shown: Sequence[int]) -> list[float]:
    observed = np.round(cells[~np.isnan(cells)])
    return [_share_of(observed == level) for level in shown]


def _name_levels(ax: Axes, shown: Sequence[int], levels: Sequence[str]) -> None:
    names = [levels[level] if len(levels[level]) <= _LONGEST else f"{levels[level][:_LONGEST]}…" for level in shown]
    steep = sum(map(len, names)) > 18
    style: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if steep else {}
    ax.set_xticks(range(len(shown)), names, fontsize=SMALL - 1, parse_math=False, **style)
    ax.tick_params(axis="x", length=0, pad=1)
    ax.tick_params(axis="y", labelsize=SMALL - 1)
