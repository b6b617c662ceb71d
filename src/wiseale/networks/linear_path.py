"""A linear auto-encoder beside the network: mu = A x + a + f(x), x_hat = B z + b + g(z)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class LinearPath(nn.Module):
    """The linear maps A, a and B, b, added to what the network returns; they are trained with it.

    Training starts them at the optimum of a linear model (:mod:`wiseale.training.setup`) and the network's last layers
    at 0, so that it begins with the quality of principal components and every unit in use.
    """

    def __init__(self, features: tuple[int, ...], latent_dim: int, outputs: tuple[int, ...]) -> None:
        super().__init__()
        self.outputs = outputs
        self.encoder = nn.Linear(math.prod(features), latent_dim)
        self.decoder = nn.Linear(latent_dim, math.prod(outputs))

    def encode(self, x: Tensor) -> Tensor:
        """A x + a for a batch (M, *features), (M, d_z)."""
        mu: Tensor = self.encoder(x.flatten(1))
        return mu

    def decode(self, z: Tensor) -> Tensor:
        """B z + b for a batch (M, d_z), (M, *outputs)."""
        return self.decoder(z).unflatten(1, self.outputs)  # type: ignore[no-any-return]


@torch.no_grad()
def zero_last_layer(network: nn.Module) -> None:
    """Make the last layer with weights return 0, so that the network adds nothing until it is trained."""
    last = [layer for layer in network.modules() if isinstance(getattr(layer, "weight", None), Tensor)][-1]
    for parameter in last.parameters():
        parameter.zero_()
