"""The paper's networks for sine waves (appendix D.1), layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from wiseale.config import setting
from wiseale.errors import ConfigError
from wiseale.networks.model import NetworkSettings, SigmaActivation
from wiseale.networks.same_padding import Pointwise, SameConv, SameConvTranspose
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
