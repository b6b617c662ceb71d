"""What all displays of an estimator share: where they are drawn, and which rows they show."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from sklearn.utils import _safe_indexing, check_consistent_length

from wiseale.data.dataset import Array
from wiseale.estimator.estimator import AutoEncoder
from wiseale.estimator.inputs import from_torch
from wiseale.figures.factor import Factor
from wiseale.figures.shown_codes import spread_rows
from wiseale.figures.style import root
from wiseale.models.inference import as_x

MAX_POINTS = 20_000
"""Rows drawn on a map or in a table's panels at the most, evenly spaced in X."""

Floats = npt.NDArray[np.floating]


class Display:
    """What all displays share: where they are drawn.

    Attributes:
        figure_: the matplotlib figure.
        ax_: the axes, the first of them where there are several.
        axes_: all axes, an array.
    """

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
        drawn = [made for made in self.figure_.axes if made not in before and made.axison]
        self.axes_ = np.array([made for made in drawn if made.get_label() != "<colorbar>"], dtype=object)
        self.ax_ = self.axes_[0]
        return self

    def _draw(self, on: Figure | SubFigure) -> None:
        raise NotImplementedError


def some_rows(X: Any, y: Any, most: int) -> tuple[Any, Array | None]:
    """X and y, or ``most`` of their rows; few rows are evenly spaced by rank of y."""
    x, labels = from_torch(X), None if y is None else np.asarray(from_torch(y))
    if labels is not None:
        check_consistent_length(x, labels)
    if len(x) <= most:
        return x, labels
    chosen = spread_rows(len(x), most, Factor("y", labels).ranks if labels is not None and most < MAX_POINTS else None)
    return _safe_indexing(x, chosen), None if labels is None else labels[chosen]


def codes_of(estimator: AutoEncoder, x: Any) -> Floats:
    """The mean codes of rows as an array, whatever ``set_output`` says."""
    return np.asarray(estimator.transform(x))


def as_decoded(estimator: AutoEncoder, x: Any) -> Floats:
    """Rows as the model returns them: of a table the cells it learned from, uint8 images as numbers from 0 to 1."""
    values: Floats = as_x(estimator._rows(x), estimator._codec.model_config.reading).numpy()
    return values


def decoded(estimator: AutoEncoder, codes: Floats) -> Floats:
    """E[x|z] of codes (n, latent_dim): of a table cells, that is numbers and the positions of levels."""
    return estimator._by_blocks(codes, estimator._codec.decode)


def column_names(estimator: AutoEncoder) -> tuple[str, ...]:
    """Names of the columns that a table's model learned from; empty where they have none."""
    return estimator._codec.model_config.columns


def checked_units(units: tuple[int, ...], latent_dim: int) -> tuple[int, ...]:
    """The units, if the code has all of them."""
    wrong = [unit for unit in units if not 0 <= unit < latent_dim]
    if wrong:
        raise ValueError(f"units must be from 0 to {latent_dim - 1}, got {wrong[0]}")
    return tuple(units)
