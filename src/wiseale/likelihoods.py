"""p(x|z): the decoder's answer for a batch of codes, normalising constants included, so that ELBOs are real nats.

A *family* is what a user chooses (a name and settings); given the decoder's output it returns a *likelihood*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
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

    def build(self, x_shape: tuple[int, ...]) -> LikelihoodFamily:
        """What a model holds: the family itself, or a module if it has parameters to learn."""
        ...

    def start_noise(self, residual: float) -> float:
        """Begin training with noise that suits residuals of this variance per entry; the variance that was taken."""
        ...

    def start_decoder(self, mean: Tensor, loadings: Tensor, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (D, d_z) and bias (D,) of a linear decoder whose likelihood has the mean ``mean + loadings z``.

        Where the link is not linear this holds about z = 0; x (n, D) and codes z (n, d_z) are rows to judge it by.
        """
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
    """Independent Gaussian entries around the decoder's output.

    ``x_sigma`` is one standard deviation for all entries, or a tensor that broadcasts to x.

    >>> Gaussian(torch.zeros(1, 2), 1.0).log_prob(torch.ones(1, 2))  # −½·2 − log 2π
    tensor([-2.8379])
    """

    mean: Tensor
    x_sigma: float | Tensor

    def log_prob(self, x: Tensor) -> Tensor:
        """−½ Σ ((x − mean)/x_sigma)² − Σ (log x_sigma + ½ log 2π)."""
        return self._weighted_squares(x - self.mean) - self._constant()

    def average_log_prob(self, x: Tensor) -> Tensor:
        """log p at the mean observation, less what the observations' spread about it costs whatever the code."""
        centre = x.mean(0, keepdim=True)
        return self.log_prob(centre) + self._weighted_squares(x - centre).mean()

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """The mean plus noise of standard deviation x_sigma."""
        noise = torch.randn(self.mean.shape, dtype=self.mean.dtype, generator=generator, device=self.mean.device)
        return self.mean + self.x_sigma * noise

    def _weighted_squares(self, difference: Tensor) -> Tensor:
        """−½ Σ (difference/x_sigma)² of every row, (M,)."""
        if isinstance(self.x_sigma, Tensor) and self.x_sigma.ndim > 0:
            return (difference / self.x_sigma).flatten(1).square().sum(1).mul(-0.5)
        return difference.flatten(1).square().sum(1) * (-0.5 / self.x_sigma**2)

    def _constant(self) -> float | Tensor:
        """Σ (log x_sigma + ½ log 2π) over the entries of x."""
        entries = self.mean[0].numel()
        if isinstance(self.x_sigma, Tensor):
            return (self.x_sigma.log() + 0.5 * LOG_2PI).sum() * (entries / self.x_sigma.numel())
        return entries * (math.log(self.x_sigma) + 0.5 * LOG_2PI)


@dataclass(frozen=True)
class BernoulliFamily(Settings):
    """Binary data, or numbers between 0 and 1: the decoder's output is the logits."""

    support: ClassVar[tuple[float, float]] = (0.0, 1.0)
    standardizes: ClassVar[bool] = False

    def __call__(self, output: Tensor) -> Bernoulli:
        """The likelihood of a batch."""
        return Bernoulli(output)

    def build(self, x_shape: tuple[int, ...]) -> BernoulliFamily:
        """Nothing to learn."""
        return self

    def start_noise(self, residual: float) -> float:
        """The variance given: a Bernoulli entry has no noise of its own to set."""
        return residual

    def start_decoder(self, mean: Tensor, loadings: Tensor, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Logits with the mean's log odds as bias; the weights are loadings / p(1 − p), times what suits the rows best.

        Entries that are nearly constant have p(1 − p) near 0: it counts as 0.05 at least.
        """
        p = mean.clamp(0.01, 0.99)
        bias, weights = p.logit(), loadings / (p * (1 - p)).clamp_min(0.05)[:, None]
        factors = [2.0**-k for k in range(5)]
        worth = [float(Bernoulli(z @ weights.T * factor + bias).log_prob(x).mean()) for factor in factors]
        return weights * factors[worth.index(max(worth))], bias


@dataclass(frozen=True)
class GaussianFamily(Settings):
    """Real data: the decoder's output is the mean."""

    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    standardizes: ClassVar[bool] = True

    x_sigma: float | Literal["learned", "columns"] = setting(
        1.0, "standard deviation of the noise: a number, learned (one for all entries), columns (one for each)", above=0
    )
    x_sigma_min: float = setting(1e-3, "floor of a learned x_sigma", above=0)

    def __call__(self, output: Tensor) -> Gaussian:
        """The likelihood of a batch, if the noise is fixed."""
        assert isinstance(self.x_sigma, float)
        return Gaussian(output, self.x_sigma)

    def build(self, x_shape: tuple[int, ...]) -> LikelihoodFamily:
        """The family itself, or a module with the logarithm of the noise as its parameter."""
        if isinstance(self.x_sigma, float):
            return self
        return LearnedNoise(x_shape if self.x_sigma == "columns" else (), self.x_sigma_min)

    def start_noise(self, residual: float) -> float:
        """The fixed variance."""
        assert isinstance(self.x_sigma, float)
        return self.x_sigma**2

    def start_decoder(self, mean: Tensor, loadings: Tensor, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """The loadings and the mean."""
        return loadings, mean


class LearnedNoise(nn.Module):
    """A Gaussian family whose x_sigma = exp(log_x_sigma) + x_sigma_min is learned (Rybkin et al. 2021, σ-VAE).

    With it the prior's weight keeps its meaning on data of any scale: at weight 1 AEVB's loss is a bound on −log p(x).
    """

    support: ClassVar[tuple[float, float]] = GaussianFamily.support
    standardizes: ClassVar[bool] = True

    def __init__(self, shape: tuple[int, ...], x_sigma_min: float) -> None:
        super().__init__()
        self.x_sigma_min = x_sigma_min
        self.log_x_sigma = nn.Parameter(torch.zeros(shape))

    @property
    def x_sigma(self) -> Tensor:
        """The standard deviation of the noise in the network's units: one, or one for each entry of x."""
        return self.log_x_sigma.exp() + self.x_sigma_min

    def forward(self, output: Tensor) -> Gaussian:
        """The likelihood of a batch."""
        return Gaussian(output, self.x_sigma)

    def build(self, x_shape: tuple[int, ...]) -> LearnedNoise:
        """It is built already."""
        return self

    @torch.no_grad()
    def start_noise(self, residual: float) -> float:
        """Set every x_sigma to the residuals' standard deviation."""
        above = max(math.sqrt(residual) - self.x_sigma_min, 0.1 * self.x_sigma_min)
        self.log_x_sigma.fill_(math.log(above))
        return float(self.x_sigma.square().mean())

    def start_decoder(self, mean: Tensor, loadings: Tensor, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """The loadings and the mean."""
        return loadings, mean
