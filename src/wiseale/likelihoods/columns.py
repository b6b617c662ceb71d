"""Distributions of a table's columns that are not numbers: two values, categories, counts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from wiseale.likelihoods.bernoulli import Bernoulli
from wiseale.likelihoods.likelihood import Likelihood

HIGHEST_LOG_RATE = 25.0  # of a count: exp of it is far beyond any table and far below float32's largest


@dataclass(frozen=True)
class Binary(Bernoulli):
    """Cells that are 0 or 1."""

    def errors(self, x: Tensor) -> Tensor:
        """1 − p(x|z)."""
        return -self.cell_log_prob(x).expm1()


@dataclass(frozen=True)
class Categorical(Likelihood):
    """Positions of levels; the logits are ``(M, columns, levels)``."""

    logits: Tensor

    @property
    def mean(self) -> Tensor:
        """The likeliest level."""
        return self.expected.argmax(2).to(self.logits)

    @property
    def expected(self) -> Tensor:
        """The probability of each level."""
        return self.logits.softmax(2)

    def cell_log_prob(self, x: Tensor) -> Tensor:
        """The logarithm of the level's probability."""
        return self.logits.log_softmax(2).gather(2, x.long()[..., None])[..., 0]

    def surprise(self, x: Tensor) -> Tensor:
        """Against the likeliest level."""
        return self.logits.log_softmax(2).amax(2) - self.cell_log_prob(x)

    def errors(self, x: Tensor) -> Tensor:
        """1 − p(x|z)."""
        return -self.cell_log_prob(x).expm1()

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """A level each, drawn on the CPU, as everywhere, because generators are of the CPU."""
        p = self.expected.cpu()
        return torch.multinomial(p.flatten(0, 1), 1, generator=generator).view(p.shape[:2]).to(self.logits)


@dataclass(frozen=True)
class Poisson(Likelihood):
    """Counts; log p is computed in float64, because that of a large count is a small difference of large numbers."""

    log_mean: Tensor

    @property
    def mean(self) -> Tensor:
        """The rate."""
        return self.log_mean.clamp_max(HIGHEST_LOG_RATE).exp()

    def cell_log_prob(self, x: Tensor) -> Tensor:
        """x·log rate − rate − log x!."""
        x, log_rate = _exact(x), _exact(self.log_mean).clamp_max(HIGHEST_LOG_RATE)
        return (x * log_rate - log_rate.exp() - torch.lgamma(x + 1)).to(self.log_mean)

    def surprise(self, x: Tensor) -> Tensor:
        """Against the mean rounded down."""
        return self.cell_log_prob(self.mean.floor()) - self.cell_log_prob(x)

    def errors(self, x: Tensor) -> Tensor:
        """(log(1 + x) − log(1 + mean))²."""
        return (x.log1p() - self.mean.log1p()).square()

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Counts of this rate."""
        return torch.poisson(self.mean.cpu(), generator=generator).to(self.log_mean)


@dataclass(frozen=True)
class NegativeBinomial(Poisson):
    """Counts of the variance mean + mean²/r."""

    r: Tensor

    def cell_log_prob(self, x: Tensor) -> Tensor:
        """log p of a Poisson count whose rate is Gamma(r, mean/r)."""
        x, r = _exact(x), _exact(self.r)
        log_odds = _exact(self.log_mean).clamp_max(HIGHEST_LOG_RATE) - r.log()
        binomial = torch.lgamma(x + r) - torch.lgamma(r) - torch.lgamma(x + 1)
        return (binomial + r * F.logsigmoid(-log_odds) + x * F.logsigmoid(log_odds)).to(self.log_mean)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Counts of a rate drawn from Gamma(r, mean/r)."""
        mean = self.mean.cpu()
        r = self.r.cpu().expand_as(mean).contiguous()
        rate = torch._standard_gamma(r, generator=generator) / r * mean
        return torch.poisson(rate, generator=generator).to(self.log_mean)


def _exact(values: Tensor) -> Tensor:
    """In float64, which Apple's GPU has not."""
    return values if values.device.type == "mps" else values.double()
