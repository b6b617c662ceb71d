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

from typing import Any, Self

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from sklearn.utils import _safe_indexing

from wiseale.data.dataset import Array
from wiseale.estimator.display import (
    MAX_POINTS,
    Display,
    Floats,
    as_decoded,
    checked_units,
    codes_of,
    column_names,
    decoded,
    some_rows,
)
from wiseale.estimator.estimator import AutoEncoder
from wiseale.estimator.inputs import from_torch
from wiseale.estimator.table_display import decoded_entries, levels_of
from wiseale.figures.column_traversals import TableTraversal, column_traversals
from wiseale.figures.columns import Levels, column_reconstructions
from wiseale.figures.decoded import Traversal, as_pixels, reconstructions, traversals
from wiseale.figures.factor import Factor
from wiseale.figures.latent_map import PlaneCodes, add_key, draw_map
from wiseale.figures.shown_codes import MAX_UNITS, traversal_codes, widest_units


class LatentMapDisplay(Display):
    """The codes of rows in the plane of two units, coloured by y; of a 1-D code a histogram.

    Args:
        codes: posterior means in the plane of the units, (n, 2) or (n, 1).
        units: the indices of these units in the code.
        y: what the rows are coloured by, (n,): at most 20 values are classes, more numbers or dates a colour scale;
            of more words, all but the 20 most frequent are grey. Missing values are dark grey crosses.
        factor_name: the name of y in the legend.
        most_active_of: the number of units among which ``units`` are those whose codes vary most, written above the
            map; 0 where they were chosen otherwise.
    """

    def __init__(
        self,
        codes: Floats,
        units: tuple[int, ...],
        y: Array | None = None,
        factor_name: str = "y",
        most_active_of: int = 0,
    ) -> None:
        self.codes, self.units, self.y, self.factor_name = codes, units, y, factor_name
        self.most_active_of = most_active_of

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
        chosen = widest_units(mu, 2) if units is None else checked_units(units, mu.shape[1])
        return cls(mu[:, list(chosen)], chosen, labels, name, mu.shape[1] if units is None else 0).plot(ax)

    def _draw(self, on: Figure | SubFigure) -> None:
        ax = on.subplots()
        factor = None if self.y is None else Factor(self.factor_name, self.y)
        shaded = draw_map(ax, PlaneCodes(self.codes, self.units, most_active_of=self.most_active_of), factor)
        add_key(on, [ax], shaded, factor)


class ReconstructionDisplay(Display):
    """Rows beside their reconstructions from the mean code.

    Images: inputs above, reconstructions below. Signals: the reconstruction over the input in grey. Tables: one panel
    per column that was learned from and is not constant, observed against reconstructed values in the user's units; of
    a category a bar for each level, how often it is reconstructed.

    Args:
        x: the rows in the user's units, (n, *x_shape); of a category the positions of the levels, NaN where a cell is
            missing.
        x_hat: their reconstructions.
        columns: names of a table's columns.
        levels: the levels of each column, none for numbers; empty where all columns are numbers.
    """

    def __init__(self, x: Floats, x_hat: Floats, columns: tuple[str, ...] = (), levels: Levels = ()) -> None:
        self.x, self.x_hat, self.columns, self.levels = x, x_hat, columns, levels

    @classmethod
    def from_estimator(
        cls, estimator: AutoEncoder, X: Any, y: Any = None, *, n_rows: int = 8, ax: Axes | None = None
    ) -> Self:
        """Reconstruct ``n_rows`` images or signals, evenly spaced in X by y, or up to 20,000 rows of a table."""
        shape = estimator.x_shape_
        x, _ = some_rows(X, y, MAX_POINTS if len(shape) == 1 else n_rows)
        observed = as_decoded(estimator, x)
        levels = levels_of(estimator._codec, observed) if len(shape) == 1 else ()
        x_hat = decoded(estimator, codes_of(estimator, x))
        return cls(observed, x_hat, column_names(estimator), levels).plot(ax)

    def _draw(self, on: Figure | SubFigure) -> None:
        named = {"reconstruction": self.x_hat}
        if self.x.ndim == 2:
            column_reconstructions(self.x, named, self.columns, on=on, levels=self.levels)
        elif self.x.ndim == 4:
            reconstructions(as_pixels(self.x), {"reconstruction": as_pixels(self.x_hat, self.x)}, on)
        else:
            reconstructions(self.x, named, on)


class TraversalDisplay(Display):
    """What changes when one unit of the code moves and the others stay at the code of one row.

    Images from low to high; signals over each other, from dark (low) to light (high); tables as the change of each
    column in the user's units, coloured by standard deviations of the column; of a category as the change in the
    probability of its most frequent levels.

    Args:
        values: decoded codes (units, steps, *x_shape) in the user's units; of a category one entry per level shown.
        units: the indices of the units that move.
        deviation: standard deviation of each column of a table.
        columns: names of a table's columns, with the level where there are levels.
    """

    def __init__(
        self,
        values: Floats,
        units: tuple[int, ...],
        deviation: Floats | None = None,
        columns: tuple[str, ...] = (),
    ) -> None:
        self.values, self.units, self.deviation, self.columns = values, units, deviation, columns

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
        chosen = widest_units(mu, MAX_UNITS) if units is None else checked_units(units, mu.shape[1])
        codes = traversal_codes(mu, sigma, start, chosen, steps)
        if estimator.model_.table is not None:
            shown = decoded_entries(estimator._codec, as_decoded(estimator, x), codes)
            return cls(shown.values, chosen, shown.deviation, shown.names).plot(ax)
        values = decoded(estimator, codes.reshape(-1, mu.shape[1]))
        values = values.reshape(*codes.shape[:2], *values.shape[1:])
        deviation = as_decoded(estimator, x).std(0) if values.ndim == 3 else None
        return cls(values, chosen, deviation, column_names(estimator)).plot(ax)

    def _draw(self, on: Figure | SubFigure) -> None:
        names = tuple(f"z{unit + 1}" for unit in self.units)
        if self.deviation is not None:
            column_traversals({"": TableTraversal(names, self.values)}, self.deviation, self.columns, on)
        else:
            values = as_pixels(self.values) if self.values.ndim == 5 else self.values
            traversals({"": Traversal(names, values)}, on)
