"""Stored numbers as x: how a ``reading`` turns bytes and floats into observations."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

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
