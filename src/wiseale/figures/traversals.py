"""Latent traversals: one unit of the code varies, the others stay fixed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from wiseale.figures.mosaic import Values, mosaic
from wiseale.figures.style import SMALL, canvas, root

_ACROSS = 2
_PANEL_WIDTH = 3.4  # inches
_SIGNAL_HEIGHT = 0.6


@dataclass(frozen=True)
class Traversal:
    """Decoded values (units, steps, *x_shape) of images (C, H, W) in [0, 1] or signals (C, L); and a name per unit."""

    units: tuple[str, ...]
    values: Values


def traversals(systems: Mapping[str, Traversal], on: Figure | SubFigure | None = None) -> Figure:
    """One panel per system, one row per unit: images from low to high, or signals drawn over each other.

    All signals share one scale, so that a unit without effect shows as a single curve.
    """
    down = math.ceil(len(systems) / _ACROSS)
    first = next(iter(systems.values()))
    units = max(len(one.units) for one in systems.values())
    low = min(float(one.values.min()) for one in systems.values())
    high = max(float(one.values.max()) for one in systems.values())
    height = units * _row_height(first.values) + 0.3
    figure = canvas(on, _PANEL_WIDTH * min(_ACROSS, len(systems)), height * down)
    places = figure.subfigures(down, min(_ACROSS, len(systems)), squeeze=False, wspace=0.03).flat
    for place, (name, one) in zip(places, systems.items(), strict=False):
        place.suptitle(name, fontsize=SMALL + 1, parse_math=False)
        for unit, ax in enumerate(place.subplots(units, 1, squeeze=False).flat):
            ax.set_axis_off()
            if unit < len(one.units):
                ax.set_axis_on()
                _draw_unit(ax, one.values[unit], one.units[unit], (low, high))
    return root(figure)


def _row_height(values: Values) -> float:
    """Height of one unit's row in inches; images keep their aspect ratio."""
    if values.ndim == 4:
        return _SIGNAL_HEIGHT
    steps, (height, width) = values.shape[1], values.shape[3:]
    share: float = height / (steps * width)
    return (_PANEL_WIDTH - 0.4) * share + 0.04


def _draw_unit(ax: Axes, values: Values, name: str, limits: tuple[float, float]) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    ax.set_ylabel(name, fontsize=SMALL, rotation=0, ha="right", va="center")
    if values.ndim == 4:
        ax.imshow(mosaic(values[None]), interpolation="nearest", aspect="equal")
        return
    ax.set_ylim(*limits)
    shades = matplotlib.colormaps["cividis"]
    for step, signal in enumerate(values):
        for channel in signal:
            ax.plot(channel, color=shades(0.95 * step / max(1, len(values) - 1)), linewidth=0.9)
