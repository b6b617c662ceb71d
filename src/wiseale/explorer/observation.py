"""How one observation is drawn: as an image, a signal or a table row, and within which range of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from wiseale.explorer.columns import ShownColumn

Kind = Literal["image", "signal", "table"]
Values = npt.NDArray[np.float32]

_THUMBNAIL_SIDE = 32  # pixels of an image's longer side
_SPARKLINE = 48  # points of a signal


@dataclass(frozen=True)
class Observation:
    """What the page needs to know to draw an x.

    Attributes:
        kind: from the shape (entries,), (channels, length) or (channels, height, width).
        columns: those of a table.
        low, high: range of nearly all values, the same for all entries of images and signals; per column of a table.
    """

    kind: Kind
    shape: tuple[int, ...]
    columns: tuple[ShownColumn, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    @classmethod
    def of(cls, x: Values, columns: tuple[ShownColumn, ...] = ()) -> Observation:
        """From some observations (n, *x_shape) in the user's units; of a table their entries."""
        shape = x.shape[1:]
        kinds: dict[int, Kind] = {1: "table", 2: "signal", 3: "image"}
        kind = kinds[len(shape)]
        if kind == "table":
            low, high = zip(*(_range(x[:, column.start], column) for column in columns), strict=True)
            return cls(kind, shape, columns, low, high)
        least, most = (float(end) for end in np.quantile(x, (0.002, 0.998)))
        if kind == "image" and x.min() >= 0 and x.max() <= 1:
            least, most = 0.0, 1.0
        return cls(kind, shape, (), (least,), (most if most > least else least + 1,))

    @property
    def size(self) -> int:
        """Number of values."""
        return int(np.prod(self.shape))

    def thumbnails(self, x: Values) -> npt.NDArray[np.uint8]:
        """Small pictures of observations (n, *x_shape), 8 bits a value over the range: (n, channels, …)."""
        if self.kind == "image":
            step = -(-max(self.shape[1:]) // _THUMBNAIL_SIDE)
            height, width = (side // step for side in self.shape[1:])
            cut = x[:, :, : height * step, : width * step]
            small = cut.reshape(len(x), self.shape[0], height, step, width, step).mean(axis=(3, 5))
        else:
            step = max(1, -(-self.shape[1] // _SPARKLINE))
            small = x[:, :, : self.shape[1] // step * step : step]
        return self.to_bytes(small)

    def to_bytes(self, x: Values) -> npt.NDArray[np.uint8]:
        """Values of an image or a signal as bytes: 0 is the low end of the range, 255 the high end."""
        scaled = (x - self.low[0]) / (self.high[0] - self.low[0])
        result: npt.NDArray[np.uint8] = np.rint(np.clip(scaled, 0, 1) * 255).astype(np.uint8)
        return result


def _range(values: Values, column: ShownColumn) -> tuple[float, float]:
    """The 1st and the 99th percentile of a column's observed values; of probabilities, 0 and 1."""
    values = values[~np.isnan(values)]
    if column.levels or len(values) == 0:
        return 0.0, 1.0
    low, high = np.quantile(values, (0.01, 0.99))
    return float(low), float(high)
