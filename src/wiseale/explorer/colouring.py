"""What points can be coloured by: labels and factors of the rows, a table's columns, the reconstruction error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from wiseale.data.dataset import Array
from wiseale.explorer.observation import Values
from wiseale.explorer.opening import ShownRows

MOST_CLASSES = 20
MOST_COLUMNS = 60


@dataclass(frozen=True)
class Colouring:
    """One number for every row.

    Attributes:
        name: as the data calls it.
        source: whether it is a factor (or label) of the rows or a column of the table.
        values: (n,); with classes the number of a row's class.
        classes: names of the classes, empty where the values are a scale.
        period: of a factor that wraps around.
    """

    name: str
    source: Literal["factor", "column"]
    values: Values
    classes: tuple[str, ...] = ()
    period: float | None = None


def colourings(shown: ShownRows, x: Values) -> tuple[Colouring, ...]:
    """The factors of the rows, then the columns of a table (n, features)."""
    return (*_factors(shown), *_columns(shown, x))


def _factors(shown: ShownRows) -> Iterator[Colouring]:
    for name, values in shown.rows.factors.items():
        period = shown.circular.get(name)
        kinds, numbers = np.unique(values, return_inverse=True)
        if values.dtype.kind not in "iuf" or (len(kinds) <= MOST_CLASSES and period is None):
            yield Colouring(name, "factor", numbers.astype(np.float32), tuple(map(_word, kinds)))
        else:
            yield Colouring(name, "factor", _float32(values), period=period)


def _columns(shown: ShownRows, x: Values) -> Iterator[Colouring]:
    if x.ndim == 2:
        for column, name in enumerate(shown.columns[:MOST_COLUMNS]):
            yield Colouring(name, "column", _float32(x[:, column]))


def _word(value: np.generic) -> str:
    return f"{value:g}" if isinstance(value, np.floating) else str(value)


def _float32(values: Array) -> npt.NDArray[np.float32]:
    return np.ascontiguousarray(values, dtype=np.float32)
