"""Decoded images and signals as pictures, with the choice of rows and codes they show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from wiseale.figures.columns import Levels, draw_counts
from wiseale.figures.style import PALETTE, SMALL, axes_grid, canvas, line_style, new_figure, panels, root, wrapped

MAX_UNITS = 5
REACH = 2.0  # standard deviations on either side of the mean

_ACROSS = 2
_PANEL_WIDTH = 3.4  # inches
_SIGNAL_HEIGHT = 0.6

Values = npt.NDArray[np.float32]
Floats = npt.NDArray[np.floating]


def spread_rows(n: int, most: int, factor: npt.NDArray[np.generic] | None = None) -> npt.NDArray[np.int64]:
    """Indices of at most ``most`` of n rows, evenly spaced after sorting by the factor, or in their order without one.

    >>> spread_rows(9, 3).tolist(), spread_rows(2, 3).tolist()
    ([0, 4, 8], [0, 1])
    """
    order = np.arange(n) if factor is None else np.argsort(np.asarray(factor), kind="stable")
    return np.asarray(order[np.linspace(0, n - 1, min(most, n)).astype(int)])


def widest_units(mu: Floats, most: int) -> tuple[int, ...]:
    """The units of the code whose means (n, d_z) vary most, in their order in the code.

    >>> widest_units(np.array([[0.0, 1.0, 5.0], [3.0, 1.5, -5.0]]), 2)
    (0, 2)
    """
    return tuple(sorted(np.argsort(-mu.var(0), kind="stable")[:most].tolist()))


def traversal_codes(mu: Floats, sigma: Floats | None, start: Floats, units: tuple[int, ...], steps: int) -> Floats:
    """Codes (units, steps, d_z) from the code ``start``: each unit over mean ± ``REACH``·s of the codes of all rows.

    s² = Var mu + mean sigma², the variance of the aggregate posterior; sigma is None for a deterministic encoder.

    >>> mu = np.array([[-1.0, 7.0], [1.0, 7.0]])
    >>> traversal_codes(mu, None, mu[0], (0,), 3)[0].tolist()
    [[-2.0, 7.0], [0.0, 7.0], [2.0, 7.0]]
    """
    spread = np.sqrt(mu.var(0) + (0 if sigma is None else (sigma**2).mean(0)))
    codes = np.tile(start, (len(units), steps, 1))
    for place, unit in enumerate(units):
        codes[place, :, unit] = mu[:, unit].mean() + spread[unit] * np.linspace(-REACH, REACH, steps)
    return codes


def mosaic(images: Values, gap: int = 1) -> Values:
    """Join images (rows, columns, 1 or 3, H, W) in [0, 1] into one (height, width, 3), with white gaps between them.

    >>> mosaic(np.zeros((2, 3, 1, 28, 28), np.float32)).shape
    (57, 86, 3)
    """
    rows, columns, channels, height, width = images.shape
    colours = np.clip(images if channels == 3 else np.repeat(images[:, :, :1], 3, 2), 0, 1)
    padded = np.pad(colours, [(0, 0)] * 3 + [(0, gap)] * 2, constant_values=1)
    whole = padded.transpose(0, 3, 1, 4, 2).reshape(rows * (height + gap), columns * (width + gap), 3)
    return whole[: len(whole) - gap, : whole.shape[1] - gap]


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
        for column, ax in enumerate(grid[row]):
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            if values.ndim == 3:  # one y range per column, so that amplitudes can be compared
                signals = [of_row[column] for of_row in x.values() if column < len(of_row)]
                low, high = min(map(np.min, signals)), max(map(np.max, signals))
                margin = 0.05 * (float(high) - float(low)) or 1.0
                ax.set_ylim(float(low) - margin, float(high) + margin)
            if column < len(values) and values.ndim == 4:
                pixels = np.clip(values[column].transpose(1, 2, 0), 0, 1)
                looks: dict[str, Any] = {} if pixels.shape[2] == 3 else {"cmap": "gray"}
                ax.imshow(pixels if pixels.shape[2] == 3 else pixels[:, :, 0], vmin=0, vmax=1, **looks)
            elif column < len(values):
                for number, channel in enumerate(values[column]):
                    ax.plot(channel, color=_colour(row, len(x), number), linewidth=0.8)
        _name_row(grid[row][0], wrapped(name))
    return root(figure)


def _colour(row: int, rows: int, channel: int) -> str:
    """The colour of a system's row, or of the channel where there is but one row."""
    return line_style(row if rows > 1 else channel)[0]


def _name_row(ax: Axes, name: str) -> None:
    ax.set_ylabel(name, fontsize=SMALL, rotation=0, ha="right", va="center", parse_math=False)


def reconstructions(x: Values, x_hat: Mapping[str, Values], on: Figure | SubFigure | None = None) -> Figure:
    """Inputs and reconstructions, one row per system, one column per image (n, C, H, W) or signal (n, C, L).

    Images lie below the inputs (none if x has length 0), signals over the input in grey.
    """
    if x.ndim == 4:
        return image_rows({"input": x, **x_hat} if len(x) else x_hat, on)
    figure = canvas(on, 0.95 * len(x) + 1.7, 0.7 * len(x_hat) + 0.2)
    grid = figure.subplots(len(x_hat), len(x), sharex=True, sharey="col", squeeze=False)
    for row, (name, signals) in enumerate(x_hat.items()):
        for ax, signal, signal_hat in zip(grid[row], x, signals, strict=True):
            for number, (channel, channel_hat) in enumerate(zip(signal, signal_hat, strict=True)):
                ax.plot(channel, color="0.72", linewidth=1.8)
                ax.plot(channel_hat, color=_colour(row, len(x_hat), number), linewidth=1.0)
            ax.set_xticks([])
            ax.tick_params(labelsize=SMALL - 1)
        _name_row(grid[row][0], wrapped(name))
    return root(figure)


@dataclass(frozen=True)
class Traversal:
    """Decoded values (units, steps, *x_shape) and a name per unit; images (C, H, W) lie in [0, 1]."""

    units: tuple[str, ...]
    values: Floats


def traversals(systems: Mapping[str, Traversal], on: Figure | SubFigure | None = None) -> Figure:
    """One panel per system, one row per unit: images from low to high, or signals drawn over each other.

    All signals share one scale, so that a unit without effect shows as a single curve.
    """
    across = min(_ACROSS, len(systems))
    down = math.ceil(len(systems) / _ACROSS)
    units = max(len(system.units) for system in systems.values())
    limits = (
        min(float(system.values.min()) for system in systems.values()),
        max(float(system.values.max()) for system in systems.values()),
    )
    row_height, shape = _SIGNAL_HEIGHT, next(iter(systems.values())).values.shape
    if len(shape) == 5:  # images keep their aspect ratio
        row_height = (_PANEL_WIDTH - 0.4) * (shape[3] / (shape[1] * shape[4])) + 0.04
    figure = canvas(on, _PANEL_WIDTH * across, (units * row_height + 0.3) * down)
    places = figure.subfigures(down, across, squeeze=False, wspace=0.03).flat
    for place, (name, system) in zip(places, systems.items(), strict=False):
        place.suptitle(name, fontsize=SMALL + 1, parse_math=False)
        axes = place.subplots(units, 1, squeeze=False).flat
        for ax, unit, values in zip(axes, system.units, system.values, strict=False):
            _draw_unit(ax, values, unit, limits)
        for unused in axes[len(system.units) :]:
            unused.set_axis_off()
    return root(figure)


def _draw_unit(ax: Axes, values: Floats, name: str, limits: tuple[float, float]) -> None:
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    _name_row(ax, name)
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
        ax.set(xticks=[], yticks=[])
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
    ax.set(xlim=(0, columns), ylim=(0, rows), box_aspect=1)


def contact_sheet(x: Values, columns: tuple[str, ...] = (), levels: Levels = ()) -> Figure:
    """An overview of rows in the user's units: images (n, C, H, W), signals (n, C, L) or tables (n, features).

    ``levels`` are those of a table's categories, none for numbers; missing cells are NaN.
    """
    if x.ndim == 4:
        return _image_grid(as_pixels(x))
    across, n = (3, len(x[:12])) if x.ndim == 3 else (4, min(16, x.shape[1]))
    height = 1.1 if x.ndim == 3 else 1.4
    figure = new_figure(9, height * math.ceil(n / across) + 0.3)
    for number, ax in enumerate(axes_grid(figure, n, across)):
        ax.tick_params(labelsize=7)
        if x.ndim == 3:
            for channel, values in enumerate(x[number]):
                ax.plot(values, linewidth=1, color=PALETTE[channel % len(PALETTE)])
            continue
        ax.set_title(columns[number] if columns else f"column {number}", fontsize=8, parse_math=False)
        cells = x[~np.isnan(x[:, number]), number]
        if levels and levels[number]:
            draw_counts(ax, cells, levels[number])
        else:
            ax.hist(cells, bins=40, color=PALETTE[0])
            ax.locator_params(axis="x", nbins=5)
            ax.ticklabel_format(axis="x", scilimits=(-3, 5))
            ax.xaxis.get_offset_text().set_fontsize(7)
    return figure


def _image_grid(x: Values, across: int = 8) -> Figure:
    down = math.ceil(len(x) / across)
    height, width = x.shape[2:]
    full = np.concatenate([x, np.ones((down * across - len(x), *x.shape[1:]), x.dtype)])
    figure = new_figure(0.9 * across, 0.9 * down * height / width)
    ax = figure.subplots()
    ax.imshow(mosaic(full.reshape(down, across, *x.shape[1:])), interpolation="nearest")
    ax.set_axis_off()
    return figure
