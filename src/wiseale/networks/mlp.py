"""Fully connected layers for observations of any shape: the default for tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from torch import nn

from wiseale.config import setting
from wiseale.networks.model import GenericNetwork


@dataclass(frozen=True)
class Mlp(GenericNetwork):
    """x flattened → hidden layers with ReLU → heads; the decoder runs the same widths backwards."""

    hidden: tuple[int, ...] = setting((256, 256), "widths of the hidden layers", minimum=1)

    example_shape: ClassVar[tuple[int, ...]] = (30,)

    def encoder(self, shape: tuple[int, ...]) -> tuple[nn.Module, int]:
        """Hidden layers for observations of this shape."""
        return nn.Sequential(nn.Flatten(), *dense((math.prod(shape), *self.hidden))), self.hidden[-1]

    def decoder(self, latent_dim: int, shape: tuple[int, ...]) -> nn.Module:
        """The same widths backwards."""
        return nn.Sequential(
            *dense((latent_dim, *reversed(self.hidden))),
            nn.Linear(self.hidden[0], math.prod(shape)),
            nn.Unflatten(1, shape),
        )


def dense(widths: tuple[int, ...], activation: type[nn.Module] = nn.ReLU) -> list[nn.Module]:
    """Linear layers of these widths, each followed by the activation."""
    return [layer for inputs, outputs in pairwise(widths) for layer in (nn.Linear(inputs, outputs), activation())]
