"""The paper's networks, layer by layer: for sine waves (appendix D.1), MNIST (D.2) and CelebA (D.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from wiseale.config import setting
from wiseale.errors import ConfigError
from wiseale.networks.layers import Pointwise, SameConv, SameConvTranspose
from wiseale.networks.model import NetworkSettings, SigmaActivation
from wiseale.networks.stack import Stack


@dataclass(frozen=True)
class PaperSine(NetworkSettings):
    """Five strided convolutions down from 256 samples, FC_64, heads; four stride-4 transposed convolutions back.

    The published decoder ends in a ReLU, which cannot return the negative half of a sine: it is left out.
    """

    sigma_activation: SigmaActivation = setting("relu", "makes the posterior's standard deviation positive")
    sigma_min: float = setting(1e-3, "floor of the posterior's standard deviation", above=0)

    example_shape: ClassVar[tuple[int, ...]] = (1, 256)

    def require(self, shape: tuple[int, ...]) -> None:
        """Waves of 256 samples alone."""
        if shape != (1, 256):
            raise ConfigError(f"network paper_sine needs waves of shape (1, 256), got {shape}: try conv1d or mlp")

    def encoder(self, shape: tuple[int, ...]) -> tuple[nn.Module, int]:
        """Five strided convolutions and FC_64."""
        self.require(shape)
        body = Stack(
            *(SameConv(1, 16, 16, 2, (256,)), nn.ReLU()),
            *(SameConv(16, 16, 16, 2, (128,)), nn.ReLU()),
            *(SameConv(16, 32, 16, 2, (64,)), nn.ReLU()),
            *(SameConv(32, 32, 16, 2, (32,)), nn.ReLU()),
            *(SameConv(32, 64, 8, 2, (16,)), nn.ReLU()),
            nn.Flatten(),
            nn.Linear(64 * 8, 64),  # FC_64: no activation, it feeds both heads
        )
        return body, 64

    def decoder(self, latent_dim: int, shape: tuple[int, ...]) -> nn.Module:
        """Four strided transposed convolutions."""
        self.require(shape)
        return Stack(
            *(nn.Linear(latent_dim, 16), nn.ReLU(), nn.Unflatten(1, (16, 1))),
            *(Pointwise(16, 128), nn.ReLU()),
            *(SameConvTranspose(128, 64, 8, 4, (1,)), nn.ReLU()),
            *(SameConvTranspose(64, 32, 16, 4, (4,)), nn.ReLU()),
            *(SameConvTranspose(32, 16, 16, 4, (16,)), nn.ReLU()),
            SameConvTranspose(16, 1, 16, 4, (64,)),
        )


@dataclass(frozen=True)
class PaperMnist(NetworkSettings):
    """Three strided 4×4 convolutions (28 → 14 → 7 → 4), FC_32, heads; three fully connected layers back to logits."""

    sigma_activation: SigmaActivation = setting("relu", "makes the posterior's standard deviation positive")
    sigma_min: float = setting(1e-3, "floor of the posterior's standard deviation", above=0)

    example_shape: ClassVar[tuple[int, ...]] = (1, 28, 28)

    def require(self, shape: tuple[int, ...]) -> None:
        """Images of 28 × 28 alone."""
        if shape != (1, 28, 28):
            raise ConfigError(f"network paper_mnist needs images of shape (1, 28, 28), got {shape}: try conv2d")

    def encoder(self, shape: tuple[int, ...]) -> tuple[nn.Module, int]:
        """Three strided convolutions and FC_32."""
        self.require(shape)
        body = Stack(
            *(SameConv(1, 16, 4, 2, (28, 28)), nn.ReLU()),
            *(SameConv(16, 32, 4, 2, (14, 14)), nn.ReLU()),
            *(SameConv(32, 64, 4, 2, (7, 7)), nn.ReLU()),
            nn.Flatten(),
            nn.Linear(64 * 4 * 4, 32),  # FC_32: no activation, it feeds both heads
        )
        return body, 32

    def decoder(self, latent_dim: int, shape: tuple[int, ...]) -> nn.Module:
        """Three fully connected layers."""
        self.require(shape)
        return nn.Sequential(
            *(nn.Linear(latent_dim, 16), nn.ReLU()),
            *(nn.Linear(16, 128), nn.ReLU()),
            *(nn.Linear(128, 784), nn.Unflatten(1, (1, 28, 28))),  # the sigmoid belongs to the likelihood
        )


@dataclass(frozen=True)
class PaperCeleba(NetworkSettings):
    """Four strided 5×5 convolutions, heads on the flattened result; three transposed ones with batch norm, one to RGB.

    They are those of the Wasserstein auto-encoder. The published last layer has one filter, which cannot be RGB: three
    here, linear.
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
