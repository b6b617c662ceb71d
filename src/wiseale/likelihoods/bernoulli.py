"""Bernoulli: binary data, or numbers between 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from wiseale.likelihoods.likelihood import Likelihood, LikelihoodSettings, OutputLayer, best_scale
from wiseale.spaces import Space


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """Independent Bernoulli entries with the given logits.

    >>> Bernoulli(torch.zeros(1, 3)).log_prob(torch.ones(1, 3))  # 3·log ½
    tensor([-2.0794])
    """

    logits: Tensor

    @property
    def mean(self) -> Tensor:
        """Probability of a one."""
        return self.logits.sigmoid()

    def cell_log_prob(self, x: Tensor) -> Tensor:
        """x·log p + (1−x)·log(1−p), from the logits without overflow."""
        return -F.binary_cross_entropy_with_logits(self.logits, x, reduction="none")

    def log_prob(self, x: Tensor) -> Tensor:
        """Σ x·log p + (1−x)·log(1−p)."""
        return -F.binary_cross_entropy_with_logits(self.logits, x, reduction="none").flatten(1).sum(1)

    def average_log_prob(self, x: Tensor) -> Tensor:
        """log p at the mean observation: log p(x|z) is linear in x, so the two are equal."""
        return self.log_prob(x.mean(0).expand_as(self.logits))

    def surprise(self, x: Tensor) -> Tensor:
        """Log p of the likelier value less log p of x, entry by entry, nats: 0 or ``|logit|`` where x is 0 or 1."""
        return self.logits.clamp_min(0) - x * self.logits

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Zeros and ones."""
        mean = self.mean
        return torch.bernoulli(mean.cpu(), generator=generator).to(mean)  # generators are of the CPU


@dataclass(frozen=True)
class BernoulliSettings(LikelihoodSettings):
    """Binary data, or numbers between 0 and 1: the decoder's output is the logits."""

    support: ClassVar[tuple[float, float]] = (0.0, 1.0)
    standardizes: ClassVar[bool] = False

    def build(self, space: Space) -> BernoulliOutput:
        """Nothing to learn."""
        return BernoulliOutput()


class BernoulliOutput(OutputLayer):
    """Takes the decoder's output as logits."""

    link = "sigmoid"

    def forward(self, output: Tensor) -> Bernoulli:
        """The likelihood of a batch."""
        return Bernoulli(output)

    def start_decoder(self, mean: Tensor, loadings: Tensor, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Logits with the mean's log odds as bias; weights times what suits the rows best."""
        bias, weights = start_logits(mean, loadings)
        return best_scale(weights, lambda decoder: Bernoulli(z @ decoder.T + bias).log_prob(x)), bias


def start_logits(mean: Tensor, loadings: Tensor) -> tuple[Tensor, Tensor]:
    """Bias and weights of logits whose sigmoid is ``mean + loadings z`` about z = 0: loadings / p(1 − p).

    Entries that are nearly constant have p(1 − p) near 0: it counts as 0.05 at least.
    """
    p = mean.clamp(0.01, 0.99)
    return p.logit(), loadings / (p * (1 - p)).clamp_min(0.05)[:, None]
