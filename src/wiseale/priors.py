"""Priors p(z) over codes: N(0, I), and the interface of objectives that learn their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from wiseale.posterior import LOG_2PI


@dataclass(frozen=True)
class StandardNormal:
    """N(0, I) in ``latent_dim`` dimensions, the prior of every system of the paper."""

    latent_dim: int

    def log_prob(self, z: Tensor) -> Tensor:
        """log p(z) in nats for codes (…, d_z), (…)."""
        return -0.5 * (z.square() + LOG_2PI).sum(-1)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n codes on the CPU, (n, d_z)."""
        return torch.randn(n, self.latent_dim, generator=generator)


@runtime_checkable
class OwnPrior(Protocol):
    """The module of an objective with ``own_prior``; it is saved with the model, because sampling needs it."""

    def sample_prior(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n codes, (n, d_z)."""
        ...
