"""p(x|z): the decoder's answer for a batch of codes, normalising constants included, so that ELBOs are real nats.

A *family* is what a user chooses (a name and settings); given the decoder's output it returns a *likelihood*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional as F

from wiseale.config import Settings, setting
from wiseale.errors import DataError
from wiseale.posterior import LOG_2PI


class Likelihood(Protocol):
    """A distribution over x for each of M codes."""

    @property
    def mean(self) -> Tensor:
        """E[x|z], ``(M, *x_shape)``: the reconstruction x_hat."""
        ...

    def log_prob(self, x: Tensor) -> Tensor:
        """log p(x_i|z_i) in nats, summed over the entries of x, (M,)."""
        ...

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One draw of x per code, ``(M, *x_shape)``."""
        ...


@runtime_checkable
class AveragesLogProb(Protocol):
    """A likelihood that knows its mean over many observations without visiting every pair of code and observation."""

    def average_log_prob(self, x: Tensor) -> Tensor:
        """(1/N) Σ_j log p(x_j|z_i) over the N observations given, ``(N, *x_shape)``, for every code, nats, (M,)."""
        ...


class LikelihoodFamily(Protocol):
    """What turns the decoder's output into a likelihood.

    Attributes:
        support: smallest and largest value of x that has a likelihood.
        standardizes: whether x may be shifted and scaled before it is learned.
    """

    support: ClassVar[tuple[float, float]]
    standardizes: ClassVar[bool]

    def __call__(self, output: Tensor) -> Likelihood:
        """The likelihood whose parameters are the decoder's output, ``(M, *x_shape)``."""
        ...


def check_support(family: LikelihoodFamily, smallest: float, largest: float) -> None:
    """Refuse x whose smallest or largest value is outside the family's support."""
    low, high = family.support
    if not (low <= smallest and largest <= high):
        name = type(family).__name__.removesuffix("Family")
        raise DataError(
            f"a {name} likelihood needs values between {low:g} and {high:g}: "
            f"the data goes from {smallest:g} to {largest:g}"
        )


@dataclass(frozen=True)
class Bernoulli:
    """Independent Bernoulli entries with the given logits.

    >>> Bernoulli(torch.zeros(1, 3)).log_prob(torch.ones(1, 3))  # 3·log ½
    tensor([-2.0794])
    """

    logits: Tensor

    @property
    def mean(self) -> Tensor:
        """Probability of a one."""
        return self.logits.sigmoid()

    def log_prob(self, x: Tensor) -> Tensor:
        """Σ x·log p + (1−x)·log(1−p), from the logits without overflow."""
        return -F.binary_cross_entropy_with_logits(self.logits, x, reduction="none").flatten(1).sum(1)

    def average_log_prob(self, x: Tensor) -> Tensor:
        """log p at the mean observation: log p(x|z) is linear in x, so the two are equal."""
        return self.log_prob(x.mean(0).expand_as(self.logits))

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Zeros and ones."""
        return torch.bernoulli(self.mean, generator=generator)


@dataclass(frozen=True)
class Gaussian:
    """Independent Gaussian entries around the decoder's output with one fixed standard deviation.

    >>> Gaussian(torch.zeros(1, 2), 1.0).log_prob(torch.ones(1, 2))  # −½·2 − log 2π
    tensor([-2.8379])
    """

    mean: Tensor
    x_sigma: float

    def log_prob(self, x: Tensor) -> Tensor:
        """−½ Σ ((x − mean)/x_sigma)² − d_x·(log x_sigma + ½ log 2π)."""
        squares = (x - self.mean).flatten(1).square().sum(1)
        constant = self.mean[0].numel() * (math.log(self.x_sigma) + 0.5 * LOG_2PI)
        return squares.mul(-0.5 / self.x_sigma**2) - constant

    def average_log_prob(self, x: Tensor) -> Tensor:
        """log p at the mean observation, less what the observations' spread about it costs whatever the code."""
        centre = x.mean(0, keepdim=True)
        spread = (x - centre).flatten(1).square().sum(1).mean()
        return self.log_prob(centre) - spread * (0.5 / self.x_sigma**2)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """The mean plus noise of standard deviation x_sigma."""
        noise = torch.randn(self.mean.shape, dtype=self.mean.dtype, generator=generator, device=self.mean.device)
        return self.mean + self.x_sigma * noise


@dataclass(frozen=True)
class BernoulliFamily(Settings):
    """Binary data, or numbers between 0 and 1: the decoder's output is the logits."""

    support: ClassVar[tuple[float, float]] = (0.0, 1.0)
    standardizes: ClassVar[bool] = False

    def __call__(self, output: Tensor) -> Bernoulli:
        """The likelihood of a batch."""
        return Bernoulli(output)


@dataclass(frozen=True)
class GaussianFamily(Settings):
    """Real data: the decoder's output is the mean."""

    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    standardizes: ClassVar[bool] = True

    x_sigma: float = setting(1.0, "standard deviation of the observation noise", above=0)

    def __call__(self, output: Tensor) -> Gaussian:
        """The likelihood of a batch."""
        return Gaussian(output, self.x_sigma)
