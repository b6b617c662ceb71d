"""The output of an encoder for a batch: one diagonal Gaussian per observation."""

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

    Attributes:
        mu: means, (M, d_z).
        sigma: standard deviations, (M, d_z), all above 0. The sign is not checked here (that would stall a GPU).

    >>> q = Posterior(torch.zeros(3, 2), torch.ones(3, 2))
    >>> len(q), q.latent_dim
    (3, 2)
    """

    mu: Tensor
    sigma: Tensor

    def __post_init__(self) -> None:
        if self.mu.ndim != 2 or self.mu.shape != self.sigma.shape:
            raise ValueError(
                f"mu and sigma must both be (M, d_z), got {tuple(self.mu.shape)} and {tuple(self.sigma.shape)}"
            )

    def __len__(self) -> int:
        return self.mu.shape[0]

    def __getitem__(self, rows: slice | Tensor) -> Posterior:
        return Posterior(self.mu[rows], self.sigma[rows])

    @property
    def latent_dim(self) -> int:
        """Size d_z of the code."""
        return self.mu.shape[1]

    def sample(self, epsilon: Tensor) -> Tensor:
        """Reparameterised draw z = mu + sigma·epsilon, (M, d_z), for standard normal epsilon of the same shape."""
        return torch.addcmul(self.mu, self.sigma, epsilon)

    def log_prob(self, z: Tensor) -> Tensor:
        """log q(z_i|x_i) in nats, (M,)."""
        return -0.5 * (((z - self.mu) / self.sigma).square() + LOG_2PI).sum(-1) - self.sigma.log().sum(-1)

    def entropy(self) -> Tensor:
        """Entropy of each posterior in nats, (M,)."""
        return self.sigma.log().sum(-1) + 0.5 * self.latent_dim * (1 + LOG_2PI)

    def detach(self) -> Posterior:
        """The same posteriors outside the graph."""
        return Posterior(self.mu.detach(), self.sigma.detach())


@dataclass(frozen=True)
class SharedRows:
    """A batch's rows shared among ranks: this rank computes the sums over pairs of the rows in ``part`` alone.

    Attributes:
        part: this rank's rows; the parts of all ranks cover the batch once, in the order of the ranks.
        gather: joins one number per row of each rank's part, (m,), to those of the whole batch, (M,), on every rank.
    """

    part: slice
    gather: Callable[[Tensor], Tensor]


class PointPosterior(Posterior):
    """The output of a deterministic encoder: z = mu. It has no sigma, and asking for sigma is an error."""

    def __init__(self, mu: Tensor) -> None:
        if mu.ndim != 2:
            raise ValueError(f"mu must be (M, d_z), got {tuple(mu.shape)}")
        object.__setattr__(self, "mu", mu)

    def __repr__(self) -> str:
        return f"PointPosterior(mu={self.mu!r})"

    @property
    def sigma(self) -> Tensor:
        """Always an error."""
        raise TypeError("a deterministic encoder's posterior has no sigma")

    def __getitem__(self, rows: slice | Tensor) -> PointPosterior:
        return PointPosterior(self.mu[rows])

    def sample(self, epsilon: Tensor) -> Tensor:
        """The code itself, (M, d_z)."""
        return self.mu

    def detach(self) -> PointPosterior:
        """The same codes outside the graph."""
        return PointPosterior(self.mu.detach())
