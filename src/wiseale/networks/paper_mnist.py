"""The paper's networks for MNIST (appendix D.2), layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from wiseale.config import setting
from wiseale.errors import ConfigError
from wiseale.networks.model import NetworkSettings, SigmaActivation
from wiseale.networks.same_padding import SameConv
from wiseale.networks.stack import Stack


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
