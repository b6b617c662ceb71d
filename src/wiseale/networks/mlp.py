"""Fully connected layers for observations of any shape: the default for tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from torch import nn

from wiseale.config import setting
from wiseale.networks.model import GenericNetwork, Pair


@dataclass(frozen=True)
class Mlp(GenericNetwork):
    """x flattened → hidden layers with ReLU → heads; the decoder runs the same widths backwards."""

    hidden: tuple[int, ...] = setting((256, 256), "widths of the hidden layers", minimum=1)

    example_shape: ClassVar[tuple[int, ...]] = (30,)

    def pair(self, x_shape: tuple[int, ...], latent_dim: int) -> Pair:
        """Modules for observations of this shape."""
        d_x = math.prod(x_shape)
        body = nn.Sequential(nn.Flatten(), *_layers((d_x, *self.hidden)))
        decoder = nn.Sequential(
            *_layers((latent_dim, *reversed(self.hidden))),
            nn.Linear(self.hidden[0], d_x),
            nn.Unflatten(1, x_shape),
        )
        return Pair(body, self.hidden[-1], decoder)


def _layers(widths: tuple[int, ...]) -> list[nn.Module]:
    return [layer for inputs, outputs in pairwise(widths) for layer in (nn.Linear(inputs, outputs), nn.ReLU())]
