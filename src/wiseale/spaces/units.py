"""From stored numbers to x, and between the user's units and the network's.

The maps of units are invertible, entry by entry, with an exact log-Jacobian. They stay on the CPU and in float64
wherever the rest of a model is moved: rows are mapped before they go to the device, and a large offset must not be
rounded before it is subtracted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from wiseale.errors import DataError
from wiseale.spaces.space import Array, Reading


def interpret(stored: Tensor | Array, reading: Reading, draws: torch.Generator | None = None) -> Tensor:
    """Stored numbers as x: float32, or float64 as they came, to be rounded once they are standardised.

    ``draws`` is the generator for dynamic binarisation.
    """
    if not isinstance(stored, Tensor):
        values = np.float32 if reading == "values" and stored.dtype != np.float64 else None
        stored = torch.from_numpy(np.require(stored, values, ["C", "W"]))
    if reading == "values":
        return stored
    if reading == "threshold":
        return (stored >= 128).float()
    unit = stored.float().mul_(1 / 255)  # a product takes half the time of a division; 255 still gives exactly 1
    return unit if reading == "unit" else torch.bernoulli(unit, generator=draws)


def as_x(stored: Array, reading: Reading) -> Tensor:
    """Rows as a model reads them; for a model of 8-bit images, floats must already be divided by 255."""
    if reading == "dynamic":
        reading = "threshold"  # dynamic binarisation is for training: after it, an image has one code
    if reading == "values" or stored.dtype == np.uint8:
        return interpret(stored, reading)
    if stored.size and not (stored.min() >= 0 and stored.max() <= 1):
        raise DataError("the model reads 8-bit images: give uint8 from 0 to 255, or numbers from 0 to 1")
    x = interpret(stored, "values")
    return (x >= 128 / 255).float() if reading == "threshold" else x


class Units(nn.Module):
    """The user's units are the network's; nothing is stored with the weights."""

    @property
    def is_identity(self) -> bool:
        """Whether nothing is changed."""
        return type(self) is Units

    def forward(self, x: Tensor) -> Tensor:
        """From the user's units to the network's."""
        return x

    def inverse(self, x: Tensor) -> Tensor:
        """From the network's units to the user's."""
        return x

    def log_jacobian(self, x: Tensor) -> Tensor:
        """log |d forward / dx| of each row, nats, (n,).

        Added to a log density in the network's units it gives the density in the user's. Missing cells (NaN)
        have no density and count nothing.
        """
        return torch.zeros(len(x), dtype=torch.float64)

    def of_columns(self, columns: Sequence[int], count: int) -> Units:
        """The map of rows made of these of the ``count`` columns."""
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        return self


class Affine(Units):
    """x ↔ (x − mean) / scale, one for all entries or one for each.

    >>> units = Affine(torch.tensor([0.0, 5.0]), torch.tensor([1.0, 2.0]))
    >>> units(torch.tensor([[3.0, 9.0]])), units.log_jacobian(torch.tensor([[3.0, 9.0]]))  # −log 1 − log 2
    (tensor([[3., 2.]]), tensor([-0.6931], dtype=torch.float64))
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    def of_columns(self, columns: Sequence[int], count: int) -> Affine:
        """The map of rows made of these of the ``count`` columns."""
        mean, scale = (values.expand(count)[list(columns)] for values in (self.mean, self.scale))
        return Affine(mean, scale)

    def forward(self, x: Tensor) -> Tensor:
        """(x − mean) / scale."""
        return (x - self.mean) / self.scale

    def inverse(self, x: Tensor) -> Tensor:
        """x · scale + mean."""
        return x * self.scale + self.mean

    def log_jacobian(self, x: Tensor) -> Tensor:
        """−Σ log scale over the observed entries."""
        log_scale = self.scale.log().double().expand(x.shape[1:])
        return -(log_scale * ~x.isnan().to(log_scale.device)).flatten(1).sum(1)
