"""Decoded images and signals: mosaics, labelled rows, reconstructions, traversals, and a 2-D latent space as a grid."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from wiseale.figures.style import PALETTE, SMALL, canvas, line_style, panels, root, wrapped

Values = npt.NDArray[np.float32]


def mosaic(images: Values, gap: int = 1) -> Values:
    """Join images (rows, columns, 1 or 3, H, W) in [0, 1] into one (height, width, 3), with white gaps between them.

    >>> mosaic(np.zeros((2, 3, 1, 28, 28), np.float32)).shape
    (57, 86, 3)
    """
    rows, columns, channels, height, width = images.shape
    colours = np.clip(images if channels == 3 else np.repeat(images[:, :, :1], 3, 2), 0, 1)
    padded = np.pad(colours, [(0, 0)] * 3 + [(0, gap)] * 2, constant_values=1)
    whole = padded.transpose(0, 3, 1, 4, 2).reshape(rows * (height + gap), columns * (width + gap), 3)
    return whole[: len(whole) - gap, : whole.shape[1] - gap] if gap else whole


def as_pixels(x: Values, like: Values | None = None) -> Values:
    """Images scaled to [0, 1]: unchanged if ``like`` (by default x) lies there, else by the smallest and largest of it.

    >>> as_pixels(np.array([0, 100, 200], np.float32)).tolist()
    [0.0, 0.5, 1.0]
    """
    like = x if like is None else like
    low, high = float(like.min()), float(like.max())
    if low >= 0 and high <= 1:
        return x
    return (x - low) / (high - low or 1.0)


def image_rows(x: Mapping[str, Values], on: Figure | SubFigure | None = None) -> Figure:
    """Draw one row per name: images (n, C, H, W) in [0, 1], or signals (n, C, L)."""
    n = max(len(values) for values in x.values())
    first = next(iter(x.values()))
    height = 0.75 * first.shape[2] / first.shape[3] if first.ndim == 4 else 0.55
    figure = canvas(on, 0.75 * n + 1.7, height * len(x) + 0.2)
    grid = figure.subplots(len(x), n, squeeze=False)
    for row, (name, values) in enumerate(x.items()):
        for column in range(n):
            ax = grid[row][column]
            ax.set_xticks([])
            ax.set_yticks([])
            ax.spines[:].set_visible(False)
            if column < len(values):
                _draw(ax, values[column], row if len(x) > 1 else None)
            if values.ndim == 3:  # one y range per column, so that amplitudes can be compared
                ax.set_ylim(*_limits(x.values(), column))
        grid[row][0].set_ylabel(wrapped(name), fontsize=SMALL, rotation=0, ha="right", va="center", parse_math=False)
    return root(figure)


def _limits(rows: Iterable[Values], column: int) -> tuple[float, float]:
    signals = [values[column] for values in rows if column < len(values)]
    low, high = min(float(v.min()) for v in signals), max(float(v.max()) for v in signals)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def _draw(ax: Axes, value: Values, row: int | None) -> None:
    """Draw an image, or a signal in the colour of its row; without a row, each channel has its own."""
    if value.ndim == 3:
        pixels = np.clip(value.transpose(1, 2, 0), 0, 1)
        grey = pixels.shape[2] != 3
        ax.imshow(pixels[:, :, 0] if grey else pixels, cmap="gray" if grey else None, vmin=0, vmax=1)
    else:
        for number, channel in enumerate(value):
            ax.plot(channel, color=line_style(number if row is None else row)[0], linewidth=0.8)


def reconstructions(x: Values, x_hat: Mapping[str, Values], on: Figure | SubFigure | None = None) -> Figure:
    """Images (n, C, H, W) in rows below the inputs (none if x has length 0), or signals (n, C, L) drawn over them."""
    if x.ndim == 3:
        return signal_reconstructions(x, x_hat, on)
    return image_rows({"input": x, **x_hat} if len(x) else x_hat, on)


def signal_reconstructions(x: Values, x_hat: Mapping[str, Values], on: Figure | SubFigure | None = None) -> Figure:
    """One row per system and one column per signal (n, C, L): the input in grey, the reconstruction over it."""
    n = len(x)
    figure = canvas(on, 0.95 * n + 1.7, 0.7 * len(x_hat) + 0.2)
    grid = figure.subplots(len(x_hat), n, sharex=True, sharey="col", squeeze=False)
    for row, (name, signals) in enumerate(x_hat.items()):
        for column in range(n):
            ax = grid[row][column]
            for number, (channel, channel_hat) in enumerate(zip(x[column], signals[column], strict=True)):
                colour = line_style(row if len(x_hat) > 1 else number)[0]  # one system: a colour for each channel
                ax.plot(channel, color="0.72", linewidth=1.8)
                ax.plot(channel_hat, color=colour, linewidth=1.0)
            ax.set_xticks([])
            ax.tick_params(labelsize=SMALL - 1)
        grid[row][0].set_ylabel(wrapped(name), fontsize=SMALL, rotation=0, ha="right", va="center", parse_math=False)
    return root(figure)


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


def manifold_grid(systems: Mapping[str, Values]) -> Figure:
    """One panel per system: a decoded grid (rows, columns, *x_shape) of images (C, H, W) in [0, 1] or signals (C, L).

    Row 0 has the smallest z2 and is at the bottom; column 0 has the smallest z1 and is at the left.
    """
    figure, axes = panels(len(systems), 3, 2.35, 2.55)
    for ax, (name, grid) in zip(axes, systems.items(), strict=True):
        if grid.ndim == 5:
            ax.imshow(mosaic(grid[::-1], gap=0), interpolation="nearest")
        else:
            _draw_signals(ax, grid)
        ax.set_title(wrapped(name), fontsize=SMALL + 1, parse_math=False)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel("z1 →", fontsize=SMALL)
        ax.set_ylabel("z2 →", fontsize=SMALL)
    return figure


def _draw_signals(ax: Axes, grid: Values) -> None:
    """Draw every signal in its own cell, all on the same scale."""
    rows, columns = grid.shape[:2]
    low, high = float(grid.min()), float(grid.max())
    scale = 0.9 / (high - low or 1.0)
    time = np.linspace(0.05, 0.95, grid.shape[-1])
    for row, column in np.ndindex(rows, columns):
        for channel in grid[row, column]:
            ax.plot(column + time, row + 0.05 + (channel - low) * scale, color=PALETTE[0], linewidth=0.5)
    ax.set_xlim(0, columns)
    ax.set_ylim(0, rows)
    ax.set_box_aspect(1)
