"""What points can be coloured by: labels and factors of the rows, a table's columns, the reconstruction error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from wiseale.data.dataset import Array
from wiseale.explorer.columns import ShownColumn
from wiseale.explorer.observation import Values
from wiseale.explorer.opening import ShownRows
from wiseale.figures.factor import Factor

MOST_COLUMNS = 60


@dataclass(frozen=True)
class Colouring:
    """One number for every row.

    Attributes:
        name: as the data calls it.
        source: a factor (or label) of the rows, a column of the table, or what the model did with them.
        values: (n,); with classes the number of a row's class, of dates the days since 1970. NaN where it is missing.
        classes: names of the classes, empty where the values are a scale.
        period: of a factor that wraps around.
        dates: whether the values are dates on a scale.
    """

    name: str
    source: Literal["factor", "column", "model"]
    values: Values
    classes: tuple[str, ...] = ()
    period: float | None = None
    dates: bool = False


def colourings(shown: ShownRows, columns: Sequence[ShownColumn]) -> tuple[Colouring, ...]:
    """The factors of the rows, the columns of a table, and which rows were learned from."""
    training = []
    if shown.learned_from is not None:
        training = [Colouring("training", "model", _float32(shown.learned_from), ("held out", "learned from"))]
    return (*_factors(shown), *_columns(shown, columns), *training)


def _factors(shown: ShownRows) -> Iterator[Colouring]:
    for name, values in shown.rows.factors.items():
        period = shown.circular.get(name)
        factor = Factor(name, values)
        if period is not None:
            yield Colouring(name, "factor", _float32(values), period=period)
        elif factor.numbers is not None:
            yield Colouring(name, "factor", _float32(factor.numbers), dates=factor.dates)
        else:
            places = np.where(factor.missing, np.nan, factor.ranks)
            yield Colouring(name, "factor", _float32(places), tuple(factor.distinct_names))


def _columns(shown: ShownRows, columns: Sequence[ShownColumn]) -> Iterator[Colouring]:
    """Columns with levels first: their classes show where groups lie."""
    numbered = sorted(enumerate(columns[:MOST_COLUMNS]), key=lambda entry: not entry[1].levels)
    for number, column in numbered:
        yield Colouring(column.name, "column", _float32(shown.rows.x[:, number]), column.levels)


def _float32(values: Array) -> npt.NDArray[np.float32]:
    return np.ascontiguousarray(values, dtype=np.float32)
