"""The paper's networks for CelebA (appendix D.3), those of the Wasserstein auto-encoder, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from wiseale.config import setting
from wiseale.errors import ConfigError
from wiseale.networks.model import NetworkSettings
from wiseale.networks.same_padding import SameConv, SameConvTranspose
from wiseale.networks.stack import Stack


@dataclass(frozen=True)
class PaperCeleba(NetworkSettings):
    """Four strided 5×5 convolutions, heads on the flattened result; three transposed ones with batch norm, one to RGB.

    The published last layer has one filter, which cannot be RGB: three here, linear.
    """

    width: float = setting(1.0, "multiplies every number of filters; 1 is the paper's, 0.25 trains on a CPU", above=0)

    example_shape: ClassVar[tuple[int, ...]] = (3, 64, 64)

    def require(self, shape: tuple[int, ...]) -> None:
        """Images of 64 × 64 alone."""
        if len(shape) != 3 or shape[1:] != (64, 64):
            raise ConfigError(f"network paper_celeba needs images of 64 x 64, got {shape}: try conv2d")

    @property
    def _filters(self) -> tuple[int, ...]:
        return tuple(max(1, round(self.width * filters)) for filters in (128, 256, 512, 1024))

    def encoder(self, shape: tuple[int, ...]) -> tuple[nn.Module, int]:
        """Four strided convolutions."""
        self.require(shape)
        colours, (c1, c2, c3, c4) = shape[0], self._filters
        body = Stack(
            *(SameConv(colours, c1, 5, 2, (64, 64)), nn.ReLU()),
            *(SameConv(c1, c2, 5, 2, (32, 32)), nn.ReLU()),
            *(SameConv(c2, c3, 5, 2, (16, 16)), nn.ReLU()),
            *(SameConv(c3, c4, 5, 2, (8, 8)), nn.ReLU()),
            nn.Flatten(),
        )
        return body, c4 * 4 * 4

    def decoder(self, latent_dim: int, shape: tuple[int, ...]) -> nn.Module:
        """Four transposed convolutions, three of them strided."""
        self.require(shape)
        colours, (c1, c2, c3, c4) = shape[0], self._filters
        return Stack(
            *(nn.Linear(latent_dim, 8 * 8 * c4), nn.ReLU(), nn.Unflatten(1, (c4, 8, 8))),
            *(SameConvTranspose(c4, c3, 5, 2, (8, 8)), nn.BatchNorm2d(c3), nn.ReLU()),
            *(SameConvTranspose(c3, c2, 5, 2, (16, 16)), nn.BatchNorm2d(c2), nn.ReLU()),
            *(SameConvTranspose(c2, c1, 5, 2, (32, 32)), nn.BatchNorm2d(c1), nn.ReLU()),
            SameConvTranspose(c1, colours, 5, 1, (64, 64)),
        )
