"""Convolutional pairs that size themselves to any signal or image: the default for people's own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from torch import nn

from wiseale.config import setting
from wiseale.errors import ConfigError
from wiseale.networks.layers import SameConv, SameConvTranspose, same_size
from wiseale.networks.model import GenericNetwork
from wiseale.networks.stack import Stack


@dataclass(frozen=True)
class _Conv(GenericNetwork):
    """Stride-2 SAME convolutions with ReLU, one hidden layer, heads; the decoder mirrors it to exactly x's shape."""

    channels: tuple[int, ...] = setting((32, 64, 64, 128), "filters of each stride-2 layer", minimum=1)
    kernel: int = setting(4, "width of every filter", minimum=1)
    hidden: int = setting(256, "width of the fully connected layer", minimum=1)

    rows: ClassVar[str]
    """The form of the rows it is for."""

    def encoder(self, shape: tuple[int, ...]) -> tuple[nn.Module, int]:
        """Convolutions for observations of this shape, and a hidden layer."""
        channels, sizes, flat = self._sizes(shape)
        down: list[nn.Module] = []
        for (inputs, outputs), size in zip(pairwise(channels), sizes[:-1], strict=True):
            down += [SameConv(inputs, outputs, self.kernel, 2, size), nn.ReLU()]
        return Stack(*down, nn.Flatten(), nn.Linear(flat, self.hidden), nn.ReLU()), self.hidden

    def decoder(self, latent_dim: int, shape: tuple[int, ...]) -> nn.Module:
        """The encoder backwards; odd sizes are restored exactly."""
        channels, sizes, flat = self._sizes(shape)
        up: list[nn.Module] = []
        for (outputs, inputs), (out, size) in zip(pairwise(channels), pairwise(sizes), strict=True):
            up = [nn.ReLU(), SameConvTranspose(inputs, outputs, self.kernel, 2, size, out), *up]
        return Stack(
            nn.Linear(latent_dim, self.hidden),
            nn.ReLU(),
            nn.Linear(self.hidden, flat),
            nn.Unflatten(1, (channels[-1], *sizes[-1])),
            *up,
        )

    def _sizes(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], list[tuple[int, ...]], int]:
        """Channels and sizes from x to the innermost layer, and the entries of that."""
        if len(shape) != len(self.example_shape):
            raise ConfigError(f"network {type(self).__name__.lower()} needs {self.rows}, got {shape}")
        channels, sizes = (shape[0], *self.channels), [shape[1:]]
        for _ in self.channels:
            sizes.append(same_size(sizes[-1], 2))
        return channels, sizes, channels[-1] * math.prod(sizes[-1])


@dataclass(frozen=True)
class Conv1d(_Conv):
    """For signals (channels, length)."""

    kernel: int = setting(8, "width of every filter", minimum=1)

    example_shape: ClassVar[tuple[int, ...]] = (1, 256)
    rows: ClassVar[str] = "signals of shape (channels, length)"


@dataclass(frozen=True)
class Conv2d(_Conv):
    """For images (channels, height, width)."""

    example_shape: ClassVar[tuple[int, ...]] = (1, 28, 28)
    rows: ClassVar[str] = "images of shape (channels, height, width)"
