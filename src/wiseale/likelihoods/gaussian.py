"""Gaussian: real data, with noise that is given or learned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from wiseale.config import setting
from wiseale.likelihoods.likelihood import Likelihood, LikelihoodSettings, OutputLayer, log_excess, normal_like
from wiseale.posterior import LOG_2PI
from wiseale.spaces import Space


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """Independent Gaussian entries around the decoder's output.

    ``x_sigma`` is one standard deviation for all entries, or a tensor that broadcasts to x.

    >>> Gaussian(torch.zeros(1, 2), 1.0).log_prob(torch.ones(1, 2))  # −½·2 − log 2π
    tensor([-2.8379])
    """

    output: Tensor
    x_sigma: float | Tensor

    @property
    def mean(self) -> Tensor:
        """The decoder's output."""
        return self.output

    def cell_log_prob(self, x: Tensor) -> Tensor:
        """−½ ((x − mean)/x_sigma)² − log x_sigma − ½ log 2π."""
        sigma = torch.as_tensor(self.x_sigma, dtype=x.dtype, device=x.device)
        return -self.surprise(x) - sigma.log() - 0.5 * LOG_2PI

    def log_prob(self, x: Tensor) -> Tensor:
        """−½ Σ ((x − mean)/x_sigma)² − Σ (log x_sigma + ½ log 2π)."""
        return self._weighted_squares(x - self.mean) - self._constant()

    def average_log_prob(self, x: Tensor) -> Tensor:
        """log p at the mean observation, less what the observations' spread about it costs whatever the code."""
        centre = x.mean(0, keepdim=True)
        return self.log_prob(centre) + self._weighted_squares(x - centre).mean()

    def surprise(self, x: Tensor) -> Tensor:
        """½ ((x − mean)/x_sigma)², entry by entry: log p of the mean less log p of x, nats."""
        return ((x - self.mean) / self.x_sigma).square() / 2

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """The mean plus noise of standard deviation x_sigma."""
        return self.mean + self.x_sigma * normal_like(self.mean, generator)

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
class GaussianSettings(LikelihoodSettings):
    """Real data: the decoder's output is the mean."""

    x_sigma: float | Literal["learned", "columns"] = setting(
        1.0,
        "standard deviation of the noise: a number, learned (one for all entries), columns (one for each)",
        minimum=1e-15,  # squares stay within float32
        maximum=1e15,
    )
    x_sigma_min: float = setting(1e-3, "floor of a learned x_sigma", minimum=1e-15, maximum=1e15)

    def build(self, space: Space) -> OutputLayer:
        """With the noise as given, or with its logarithm as a parameter."""
        if isinstance(self.x_sigma, float):
            return FixedNoise(self.x_sigma)
        return LearnedNoise(space.x_shape if self.x_sigma == "columns" else (), self.x_sigma_min)


class FixedNoise(OutputLayer):
    """Takes the decoder's output as the mean; x_sigma is given."""

    link = "identity"

    def __init__(self, x_sigma: float) -> None:
        super().__init__()
        self.x_sigma = x_sigma

    def forward(self, output: Tensor) -> Gaussian:
        """The likelihood of a batch."""
        return Gaussian(output, self.x_sigma)

    def start_noise(self, residual: float) -> float:
        """The given variance."""
        return self.x_sigma**2


class LearnedNoise(OutputLayer):
    """Takes the decoder's output as the mean; x_sigma = exp(log_x_sigma) + x_sigma_min is learned.

    With it the prior's weight keeps its meaning on data of any scale (Rybkin et al. 2021, σ-VAE): at weight 1 AEVB's
    loss is a bound on −log p(x).
    """

    link = "identity"

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

    @torch.no_grad()
    def start_noise(self, residual: float) -> float:
        """Set every x_sigma to the residuals' standard deviation."""
        self.log_x_sigma.fill_(log_excess(residual, self.x_sigma_min))
        return float(self.x_sigma.square().mean())
