"""What is known of the rows, sorted by kind: continuous factors, circular ones, and classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from wiseale.data.dataset import Array

Classes = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

BINS = 20
MOST_CLASSES = 100


@dataclass(frozen=True)
class Factor:
    """One factor of all rows.

    Attributes:
        kind: classes have no order; circular factors are only ever used through their bins.
        values: the numbers of a continuous or circular factor, the class of each row otherwise, (n,).
        bins: which of 20 bins each row falls into (of equal counts; circular: of equal width), or its class, (n,).
    """

    name: str
    kind: Literal["continuous", "circular", "classes"]
    values: Numbers
    bins: Classes

    def take(self, rows: Classes) -> Factor:
        """The same factor of the given rows."""
        return Factor(self.name, self.kind, self.values[rows], self.bins[rows])


def known_factors(factors: Mapping[str, Array], circular: Mapping[str, float]) -> list[Factor]:
    """The factors that can be used: not constant, no missing numbers, and no more than 100 classes."""
    found = (_factor(name, values, circular.get(name)) for name, values in factors.items())
    return [factor for factor in found if factor is not None]


def equal_counts(values: Numbers, bins: int = BINS) -> Classes:
    """Which of ``bins`` bins of about equal counts each value falls into, (n,); equal values share a bin."""
    edges = np.quantile(values, np.arange(1, bins) / bins)
    return np.searchsorted(edges, values, side="right")


def _factor(name: str, values: Array, period: float | None) -> Factor | None:
    numeric = values.dtype.kind in "biuf"
    if not numeric and period is None:
        values = values.astype(str)
    elif not np.isfinite(numbers := values.astype(np.float64)).all():
        return None
    distinct, classes = np.unique(values, return_inverse=True)
    if len(distinct) < 2:
        return None
    if period is not None:
        turns = np.floor(numbers % period / period * BINS).astype(np.int64)
        return Factor(name, "circular", numbers, turns.clip(0, BINS - 1))
    if numeric and len(distinct) > BINS:
        return Factor(name, "continuous", numbers, equal_counts(numbers))
    if len(distinct) > MOST_CLASSES:
        return None
    return Factor(name, "classes", classes.astype(np.float64), classes.astype(np.int64))
