"""p(x|z): the decoder's answer for a batch of codes, normalising constants included, so that ELBOs are real nats.

A user chooses *settings* (a name and values); ``settings.build(space)`` makes the *output layer* that a model holds,
with what it learns beside the network; called on the decoder's output it returns a *likelihood*.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from wiseale.config import Settings
from wiseale.errors import ConfigError, DataError
from wiseale.spaces import Space


class Likelihood(ABC):
    """A distribution over x for each of M codes."""

    @property
    @abstractmethod
    def mean(self) -> Tensor:
        """E[x|z], ``(M, *x_shape)``: the reconstruction x_hat; of a category the likeliest level."""

    @property
    def expected(self) -> Tensor:
        """E of every entry of the decoder's output, ``(M, *output_shape)``; of a category the p of each level."""
        return self.mean

    @abstractmethod
    def cell_log_prob(self, x: Tensor) -> Tensor:
        """log p of every entry of x in nats, ``(M, *x_shape)``; 0 where it was not observed."""

    def log_prob(self, x: Tensor) -> Tensor:
        """log p(x_i|z_i) in nats, summed over the entries of x, (M,)."""
        return self.cell_log_prob(x).flatten(1).sum(1)

    def average_log_prob(self, x: Tensor) -> Tensor:
        """(1/N) Σ_j log p(x_j|z_i) over the N observations given, ``(N, *x_shape)``, for every code, nats, (M,)."""
        return self.pairwise_log_prob(x).mean(1)

    def pairwise_log_prob(self, x: Tensor) -> Tensor:
        """log p(x_j|z_i) for every code i and observation j, nats, (M, N).

        Computed one observation at a time and again in the backward pass: memory is O(M·d_x + M·N), not O(M·N·d_x).
        """
        shape = self.mean.shape

        def column(observation: Tensor) -> Tensor:
            return self.log_prob(observation.expand(shape))

        return torch.stack([checkpoint(column, observation, use_reentrant=False) for observation in x], 1)

    @abstractmethod
    def surprise(self, x: Tensor) -> Tensor:
        """Log p of the expected entry less log p of the observed one, ``(M, *x_shape)``, nats, NaN if not observed."""

    def errors(self, x: Tensor) -> Tensor:
        """How wrong each entry comes back, ``(M, *x_shape)``, NaN where it was not observed: (x − mean)²."""
        return (x - self.mean).square()

    @abstractmethod
    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One draw of x per code, ``(M, *x_shape)``."""


class OutputLayer(nn.Module, ABC):
    """What turns the decoder's output into a likelihood; holds what is learned beside the network."""

    hidden: float = 0.0
    """Part of the cells hidden from the encoder in each training step."""

    link: Literal["identity", "sigmoid"] | None = None
    """From the decoder's output to E[x|z], where one of these functions of every entry is all."""

    @abstractmethod
    def forward(self, output: Tensor) -> Likelihood:
        """The likelihood whose parameters are the decoder's output, ``(M, *output_shape)``."""

    def cells(self, expected: Tensor) -> Tensor:
        """E[x|z] for expectations of every entry, ``(M, *output_shape)``."""
        return expected

    def start_noise(self, residual: float) -> float:
        """Begin training with noise that suits residuals of this variance per entry; the variance that was taken."""
        return residual

    def start_decoder(self, mean: Tensor, loadings: Tensor, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (D, d_z) and bias (D,) of a linear decoder whose likelihood has the mean ``mean + loadings z``.

        Where the link is not linear this holds about z = 0; x (n, D) and codes z (n, d_z) are rows to judge it by.
        """
        return loadings, mean


@dataclass(frozen=True)
class LikelihoodSettings(Settings):
    """Base of every likelihood's settings."""

    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    """Smallest and largest value of x that has a likelihood."""
    standardizes: ClassVar[bool] = True
    """Whether x may be shifted and scaled before it is learned."""

    @abstractmethod
    def build(self, space: Space) -> OutputLayer:
        """What a model holds."""

    def require(self, space: Space) -> None:
        """An error where rows of this space have no such likelihood."""
        if space.missing:
            name = type(self).__name__.removesuffix("Settings").lower()
            raise ConfigError(f"likelihood {name} cannot be that of columns with kinds: leave it out")

    def check_support(self, smallest: float, largest: float) -> None:
        """Refuse x whose smallest or largest value has no likelihood."""
        low, high = self.support
        if not (low <= smallest and largest <= high) and (low, high) != (-math.inf, math.inf):
            name = type(self).__name__.removesuffix("Settings")
            raise DataError(
                f"a {name} likelihood needs values between {low:g} and {high:g}: "
                f"the data goes from {smallest:g} to {largest:g}"
            )


def best_scale(weights: Tensor, log_prob: Callable[[Tensor], Tensor], keep: Tensor | bool = False) -> Tensor:
    """Decoder weights (D, d_z) times that power of ½ at which rows are likeliest; those in ``keep`` stay."""
    candidates = [torch.where(torch.as_tensor(keep), weights, weights * 2.0**-k) for k in range(5)]
    worth = [float(log_prob(candidate).mean()) for candidate in candidates]
    return candidates[worth.index(max(worth))]


def log_excess(variance: float, floor: float) -> float:
    """log(σ − floor) of a width σ with this variance, whose logarithm above its floor is learned."""
    return math.log(max(math.sqrt(variance) - floor, 0.1 * floor))


def normal_like(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Standard normal noise of the same shape, dtype and device, drawn on the CPU, of which generators are."""
    return torch.randn(like.shape, dtype=like.dtype, generator=generator).to(like.device)


def mean_error(errors: Tensor) -> Tensor:
    """The mean of each row's errors, (M,), over the entries that were observed."""
    flat = errors.flatten(1)
    return flat.nanmean(1) if bool(flat.isnan().any()) else flat.mean(1)
