"""The output of an encoder for a batch: one diagonal Gaussian, or one code, per observation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Posterior:
    """q(z|x_i) = N(mu_i, diag sigma_i²) for i = 1 … M; the equal-weight mixture of them is the aggregate posterior.

    ``mu`` and ``sigma`` are (M, d_z), every sigma above 0, which is not checked here (that would stall a GPU). A
    deterministic encoder returns codes alone: z = mu, and ``sigma`` is None.

    >>> q = Posterior(torch.zeros(3, 2), torch.ones(3, 2))
    >>> len(q), q.latent_dim
    (3, 2)
    """

    mu: Tensor
    sigma: Tensor | None = None

    def __post_init__(self) -> None:
        if self.mu.ndim != 2 or (self.sigma is not None and self.mu.shape != self.sigma.shape):
            sigma = "" if self.sigma is None else f" and {tuple(self.sigma.shape)}"
            raise ValueError(f"mu and sigma must both be (M, d_z), got {tuple(self.mu.shape)}{sigma}")

    def __len__(self) -> int:
        return self.mu.shape[0]

    def __getitem__(self, rows: slice | Tensor) -> Posterior:
        return self.map(lambda part: part[rows])

    def map(self, function: Callable[[Tensor], Tensor]) -> Posterior:
        """The posteriors with a function applied to mu, and to sigma if there is one."""
        return Posterior(function(self.mu), None if self.sigma is None else function(self.sigma))

    @property
    def latent_dim(self) -> int:
        """Size d_z of the code."""
        return self.mu.shape[1]

    @property
    def scale(self) -> Tensor:
        """``sigma`` for formulas that need one, (M, d_z); TypeError where the encoder is deterministic."""
        if self.sigma is None:
            raise TypeError("a deterministic encoder's posterior has no sigma: its sigma is None")
        return self.sigma

    def sample(self, epsilon: Tensor) -> Tensor:
        """Reparameterised draw z = mu + sigma·epsilon, (M, d_z), for standard normal epsilon; z = mu without sigma."""
        return self.mu if self.sigma is None else torch.addcmul(self.mu, self.sigma, epsilon)

    def log_prob(self, z: Tensor) -> Tensor:
        """log q(z_i|x_i) in nats, (M,)."""
        return -0.5 * (((z - self.mu) / self.scale).square() + LOG_2PI).sum(-1) - self.scale.log().sum(-1)

    def entropy(self) -> Tensor:
        """Entropy of each posterior in nats, (M,)."""
        return self.scale.log().sum(-1) + 0.5 * self.latent_dim * (1 + LOG_2PI)

    def detach(self) -> Posterior:
        """The same posteriors outside the graph."""
        return self.map(Tensor.detach)
