"""Pictures of a fitted estimator in scikit-learn's style: ``Display.from_estimator(est, X, y)`` computes and draws.

Each display is drawn with matplotlib: on a new figure of pyplot, or in the place of the axes given as ``ax``.

>>> import matplotlib; matplotlib.use("agg")
>>> import numpy as np
>>> from wiseale import AutoEncoder, LatentMapDisplay, ReconstructionDisplay, TraversalDisplay
>>> X = np.random.default_rng(0).normal(size=(60, 4)) * [1, 1, 1, 1000]
>>> est = AutoEncoder(network="mlp:hidden=8", max_epochs=1, random_state=0).fit(X)
>>> display = LatentMapDisplay.from_estimator(est, X, X[:, 3] > 0, factor_name="large")
>>> display.codes.shape, display.ax_.get_xlabel()
((60, 2), 'z1')
>>> ReconstructionDisplay.from_estimator(est, X).axes_.shape  # one panel per column
(4,)
>>> TraversalDisplay.from_estimator(est, X, row=3, steps=5).values.shape  # units, steps, columns
(2, 5, 4)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from sklearn.utils import _safe_indexing, check_consistent_length

from wiseale.data.dataset import Array
from wiseale.estimator.estimator import AutoEncoder
from wiseale.estimator.inputs import from_torch
from wiseale.figures.column_matrices import column_traversals
from wiseale.figures.columns import MAX_COLUMNS, Levels, column_reconstructions, deviations
from wiseale.figures.decoded import (
    MAX_UNITS,
    Traversal,
    as_pixels,
    reconstructions,
    spread_rows,
    traversal_codes,
    traversals,
    widest_units,
)
from wiseale.figures.factor import Factor
from wiseale.figures.latent_map import PlaneCodes, add_key, draw_map
from wiseale.figures.style import root
from wiseale.spaces import TableSpace
from wiseale.spaces.units import as_x

MAX_POINTS = 20_000
"""Rows drawn on a map or in a table's panels at the most, evenly spaced in X."""

Floats = npt.NDArray[np.floating]


class Display:
    """What all displays share: where they are drawn, ``figure_``, and its axes, ``axes_``; ``ax_`` is the first."""

    figure_: Figure
    ax_: Axes
    axes_: npt.NDArray[Any]

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw in the place of ``ax``, or on a new figure; what ``from_estimator`` has drawn already is kept."""
        import matplotlib.pyplot as plt

        if ax is None:
            if hasattr(self, "figure_") and plt.fignum_exists(getattr(self.figure_, "number", "")):
                return self
            part: Figure | SubFigure = plt.figure(layout="constrained")
        else:
            place, figure = ax.get_subplotspec(), ax.get_figure()
            if place is None or figure is None:
                raise ValueError("ax must be one of a figure's subplots, as plt.subplots() makes them")
            ax.remove()
            part = figure.add_subfigure(place)
        self.figure_ = root(part)
        before = list(self.figure_.axes)
        self._draw(part)
        axes = [new for new in self.figure_.axes if new not in before and new.axison]
        self.axes_ = np.array([new for new in axes if new.get_label() != "<colorbar>"], dtype=object)
        self.ax_ = self.axes_[0]
        return self

    def _draw(self, on: Figure | SubFigure) -> None:
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class LatentMapDisplay(Display):
    """The codes of rows in the plane of two units, coloured by y; of a 1-D code a histogram.

    Args:
        codes: posterior means in the plane of the units, (n, 2) or (n, 1).
        units: the indices of these units in the code; those whose codes vary most among ``most_active_of``, if not 0.
        y: what the rows are coloured by, (n,): at most 20 values are classes, more numbers or dates a colour scale;
            of more words, all but the 20 most frequent are grey. Missing values are dark grey crosses.
        factor_name: the name of y in the legend.
    """

    codes: Floats
    units: tuple[int, ...]
    y: Array | None = None
    factor_name: str = "y"
    most_active_of: int = 0

    @classmethod
    def from_estimator(
        cls,
        estimator: AutoEncoder,
        X: Any,
        y: Any = None,
        *,
        units: tuple[int, int] | None = None,
        factor_name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Encode X and draw; ``units`` are those whose codes vary most, unless given (counted from 0).

        ``factor_name`` is the name of y where it has one (a column of a data frame), unless given.
        """
        name = factor_name or str(getattr(y, "name", None) or "y")
        x, labels = some_rows(X, y, MAX_POINTS)
        mu = codes_of(estimator, x)
        indices = widest_units(mu, 2) if units is None else checked_units(units, mu.shape[1])
        return cls(mu[:, list(indices)], indices, labels, name, mu.shape[1] if units is None else 0).plot(ax)

    def _draw(self, on: Figure | SubFigure) -> None:
        ax = on.subplots()
        factor = None if self.y is None else Factor(self.factor_name, self.y)
        shaded = draw_map(ax, PlaneCodes(self.codes, self.units, most_active_of=self.most_active_of), factor)
        add_key(on, [ax], shaded, factor)


@dataclass(eq=False, repr=False)
class ReconstructionDisplay(Display):
    """Rows beside their reconstructions from the mean code.

    Images: inputs above, reconstructions below. Signals: the reconstruction over the input in grey. Tables: one panel
    per column that was learned from and is not constant, observed against reconstructed values in the user's units; of
    a category a bar for each level, how often it is reconstructed.

    Args:
        x, x_hat: the rows in the user's units, (n, *x_shape), and their reconstructions; of a category the positions of
            the levels, NaN where a cell is missing.
        columns, levels: names of a table's columns, and the levels of each; empty where all are numbers.
    """

    x: Floats
    x_hat: Floats
    columns: tuple[str, ...] = ()
    levels: Levels = ()

    @classmethod
    def from_estimator(
        cls, estimator: AutoEncoder, X: Any, y: Any = None, *, n_rows: int = 8, ax: Axes | None = None
    ) -> Self:
        """Reconstruct ``n_rows`` images or signals, evenly spaced in X by y, or up to 20,000 rows of a table."""
        shape = estimator.x_shape_
        x, _ = some_rows(X, y, MAX_POINTS if len(shape) == 1 else n_rows)
        observed = as_decoded(estimator, x)
        space, x_hat = estimator._codec.space, decoded(estimator, codes_of(estimator, x))
        return cls(observed, x_hat, space.names, space.levels).plot(ax)

    def _draw(self, on: Figure | SubFigure) -> None:
        named = {"reconstruction": self.x_hat}
        if self.x.ndim == 2:
            column_reconstructions(self.x, named, self.columns, on=on, levels=self.levels)
        elif self.x.ndim == 4:
            reconstructions(as_pixels(self.x), {"reconstruction": as_pixels(self.x_hat, self.x)}, on)
        else:
            reconstructions(self.x, named, on)


@dataclass(eq=False, repr=False)
class TraversalDisplay(Display):
    """What changes when one unit of the code moves and the others stay at the code of one row.

    Images from low to high; signals over each other, from dark (low) to light (high); tables as the change of each
    column in the user's units, coloured by standard deviations of the column; of a category as the change in the
    probability of its most frequent levels.

    Args:
        values: decoded codes (units, steps, *x_shape) in the user's units; of a category one entry per level shown.
        units: the indices of the units that move.
        deviation, columns: standard deviation and name (with the level) of each column of a table.
    """

    values: Floats
    units: tuple[int, ...]
    deviation: Floats | None = None
    columns: tuple[str, ...] = ()

    @classmethod
    def from_estimator(
        cls,
        estimator: AutoEncoder,
        X: Any,
        y: Any = None,
        *,
        row: int = 0,
        units: tuple[int, ...] | None = None,
        steps: int = 5,
        ax: Axes | None = None,
    ) -> Self:
        """Traverse from the code of one row of X over two standard deviations of the codes of X; y is not used.

        ``units`` are the five whose codes vary most, unless given (counted from 0). ``steps`` is odd.
        """
        if steps < 3 or steps % 2 == 0:
            raise ValueError(f"steps must be odd and at least 3, got {steps}")
        if not 0 <= row < len(X):
            raise ValueError(f"row must be from 0 to {len(X) - 1}, the last of X, got {row}")
        start = codes_of(estimator, _safe_indexing(from_torch(X), [row]))[0]
        x, _ = some_rows(X, None, MAX_POINTS)
        mu, sigma = estimator.posterior(x) if estimator.model_.stochastic else (codes_of(estimator, x), None)
        indices = widest_units(mu, MAX_UNITS) if units is None else checked_units(units, mu.shape[1])
        codes = traversal_codes(mu, sigma, start, indices, steps)
        space, flat = estimator._codec.space, codes.reshape(-1, mu.shape[1])
        deviation: Floats | None = None
        if isinstance(space, TableSpace) and space.levels:
            cells = as_decoded(estimator, x)
            places = space.likeliest_entries(cells, MAX_COLUMNS)
            values = estimator._by_blocks(flat, estimator._codec.expected)[:, places]
            deviation = deviations(space.expand(cells)[:, places])
            names = tuple(space.entries[place].name for place in places)
        else:
            values, names = decoded(estimator, flat), space.names
            if values.ndim == 2:
                deviation = as_decoded(estimator, x).std(0)
        return cls(values.reshape(*codes.shape[:2], *values.shape[1:]), indices, deviation, names).plot(ax)

    def _draw(self, on: Figure | SubFigure) -> None:
        names = tuple(f"z{unit + 1}" for unit in self.units)
        if self.deviation is not None:
            column_traversals({"": Traversal(names, self.values)}, self.deviation, self.columns, on)
        else:
            values = as_pixels(self.values) if self.values.ndim == 5 else self.values
            traversals({"": Traversal(names, values)}, on)


def some_rows(X: Any, y: Any, most: int) -> tuple[Any, Array | None]:
    """X and y, or ``most`` of their rows; few rows are evenly spaced by rank of y."""
    x, labels = from_torch(X), None if y is None else np.asarray(from_torch(y))
    if labels is not None:
        check_consistent_length(x, labels)
    if len(x) <= most:
        return x, labels
    indices = spread_rows(len(x), most, Factor("y", labels).ranks if labels is not None and most < MAX_POINTS else None)
    return _safe_indexing(x, indices), None if labels is None else labels[indices]


def codes_of(estimator: AutoEncoder, x: Any) -> Floats:
    """The mean codes of rows as an array, whatever ``set_output`` says."""
    return np.asarray(estimator.transform(x))


def as_decoded(estimator: AutoEncoder, x: Any) -> Floats:
    """Rows as the model returns them: of a table the cells it learned from, uint8 images as numbers from 0 to 1."""
    values: Floats = as_x(estimator._rows(x), estimator._codec.space.reading).numpy()
    return values


def decoded(estimator: AutoEncoder, codes: Floats) -> Floats:
    """E[x|z] of codes (n, latent_dim): of a table cells, that is numbers and the positions of levels."""
    return estimator._by_blocks(codes, estimator._codec.decode)


def checked_units(units: tuple[int, ...], latent_dim: int) -> tuple[int, ...]:
    """The units, if the code has all of them."""
    wrong = [unit for unit in units if not 0 <= unit < latent_dim]
    if wrong:
        raise ValueError(f"units must be from 0 to {latent_dim - 1}, got {wrong[0]}")
    return tuple(units)
