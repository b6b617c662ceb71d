"""How rows are drawn: an observation as an image, a signal or a table row, and the colours of the points.

A table's rows are entries: one number per column, or per level of a category. What is decoded and what was observed
have the same form: the mean of a number, the rate of a count, the probability of a binary column's second level, the
probability of every level of a category. Of an observed row probabilities are 0 or 1; of a missing cell NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from wiseale.explorer.opening import ShownRows
from wiseale.figures.factor import Factor
from wiseale.spaces import Space, TableSpace

Values = npt.NDArray[np.float32]

MOST_COLUMNS = 60  # to colour by
_THUMBNAIL_SIDE = 32  # pixels of an image's longer side
_SPARKLINE = 48  # points of a signal


@dataclass(frozen=True)
class ShownColumn:
    """A column of a table: its levels, whether its numbers are whole, its first entry and how many it has."""

    name: str
    kind: Literal["number", "binary", "category", "count"] = "number"
    levels: tuple[str, ...] = ()
    whole: bool = False
    start: int = 0
    width: int = 1


def shown_columns(space: Space, names: Sequence[str] = ()) -> tuple[ShownColumn, ...]:
    """The columns of a table, none for signals and images; ``names`` are of columns that have none in the space."""
    if not isinstance(space, TableSpace):
        return ()
    names = space.names or names or [f"x{i}" for i in range(space.x_shape[0])]
    return tuple(
        ShownColumn(
            name,
            "count" if column.is_count else column.kind,  # type: ignore[arg-type]
            tuple(str(level) for level in column.levels),
            space.missing and (column.whole or column.is_count),
            start,
            column.width,
        )
        for name, column, start in zip(names, space.learned, space.starts, strict=True)
    )


@dataclass(frozen=True)
class Observation:
    """What the page needs to know to draw an x: ``low`` and ``high`` are the range of nearly all values.

    The range is that of all entries of images (channels, height, width) and signals (channels, length), and of each of
    the columns of a table (entries,).
    """

    kind: Literal["table", "signal", "image"]
    shape: tuple[int, ...]
    columns: tuple[ShownColumn, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    @classmethod
    def of(cls, x: Values, columns: tuple[ShownColumn, ...] = ()) -> Observation:
        """From some observations (n, *x_shape) in the user's units; of a table their entries."""
        shape = x.shape[1:]
        if len(shape) == 1:
            low, high = zip(*(_range(x[:, column.start], column) for column in columns), strict=True)
            return cls("table", shape, columns, low, high)
        least, most = (float(end) for end in np.quantile(x, (0.002, 0.998)))
        if len(shape) == 3 and x.min() >= 0 and x.max() <= 1:
            least, most = 0.0, 1.0
        kind: Literal["signal", "image"] = "image" if len(shape) == 3 else "signal"
        return cls(kind, shape, (), (least,), (most if most > least else least + 1,))

    @property
    def size(self) -> int:
        """Number of values."""
        return int(np.prod(self.shape))

    def thumbnails(self, x: Values) -> npt.NDArray[np.uint8]:
        """Small pictures of images or signals (n, *x_shape), 8 bits a value over the range: (n, channels, …)."""
        if self.kind == "image":
            step = -(-max(self.shape[1:]) // _THUMBNAIL_SIDE)
            height, width = (side // step for side in self.shape[1:])
            cut = x[:, :, : height * step, : width * step]
            small = cut.reshape(len(x), self.shape[0], height, step, width, step).mean(axis=(3, 5))
        else:
            step = max(1, -(-self.shape[1] // _SPARKLINE))
            small = x[:, :, : self.shape[1] // step * step : step]
        return to_bytes(small, self.low[0], self.high[0])


def to_bytes(x: Values, low: float, high: float) -> npt.NDArray[np.uint8]:
    """Values as bytes: 0 is the low end of the range, 255 the high end."""
    scaled = (x - low) / max(high - low, 1e-12)
    pixels: npt.NDArray[np.uint8] = np.rint(np.clip(scaled, 0, 1) * 255).astype(np.uint8)
    return pixels


def _range(values: Values, column: ShownColumn) -> tuple[float, float]:
    """The 1st and the 99th percentile of a column's observed values; of probabilities, 0 and 1."""
    values = values[~np.isnan(values)]
    if column.levels or len(values) == 0:
        return 0.0, 1.0
    low, high = np.quantile(values, (0.01, 0.99))
    return float(low), float(high)


@dataclass(frozen=True)
class Colouring:
    """One number for every row, by which its point may be coloured.

    ``values`` (n,) are numbers of the named classes, else lie on a scale: of dates in days since 1970. NaN is missing.
    """

    name: str
    source: Literal["factor", "column", "model"]
    values: Values
    classes: tuple[str, ...] = ()
    period: float | None = None
    dates: bool = False


def colourings(shown: ShownRows, columns: Sequence[ShownColumn]) -> Iterator[Colouring]:
    """The factors of the rows; the columns of a table, first those with levels; which rows were learned from."""
    for name, values in shown.rows.factors.items():
        factor = Factor(name, values)
        if (period := shown.circular.get(name)) is not None:
            yield Colouring(name, "factor", np.asarray(values, np.float32), period=period)
        elif factor.numbers is not None:
            yield Colouring(name, "factor", factor.numbers.astype(np.float32), dates=factor.dates)
        else:
            places = np.where(factor.missing, np.nan, factor.ranks).astype(np.float32)
            yield Colouring(name, "factor", places, tuple(factor.distinct_names))
    for number, column in sorted(enumerate(columns[:MOST_COLUMNS]), key=lambda entry: not entry[1].levels):
        yield Colouring(column.name, "column", shown.rows.x[:, number].astype(np.float32), column.levels)
    if shown.learned_from is not None:
        yield Colouring("training", "model", shown.learned_from.astype(np.float32), ("held out", "learned from"))
