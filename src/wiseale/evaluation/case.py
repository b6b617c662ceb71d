"""The input of every measure: the encoded rows, the seed of its draws, and results that several measures share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from wiseale.divergences import log_aggregate
from wiseale.divergences.streaming import LEAST_PAIRS
from wiseale.evaluation.encoded import Encoded, RowErrors, row_errors
from wiseale.priors import StandardNormal
from wiseale.randomness import generator, shuffled, standard_normal

Tick = Callable[[float], None]
"""Called now and then with the fraction of a part that is done."""

Need = Literal["stochastic encoder", "normal prior"]

_RATIO_ROWS = 1024  # codes in a part of log_ratio, at least


class Draw(IntEnum):
    """Counters that keep the draws of different measures apart."""

    RECONSTRUCTION = 0
    AGGREGATE = 1
    IMPORTANCE = 2
    IMPORTANCE_ROWS = 3
    SEPARATION = 4
    PRIOR = 5
    COVERAGE = 6
    MOVE = 7
    PATHS = 8
    FACTORS = 9
    OWN_BOUND = 10
    FACTOR_CODES = 11
    SEPARATION_ROWS = 12


@dataclass(frozen=True)
class Case:
    """A model applied to rows it has not seen, to be measured.

    Attributes:
        seed: every Monte Carlo draw follows from it.
        nll_samples: importance samples K for each row of the negative log likelihood; 0 leaves it out.
    """

    encoded: Encoded
    seed: int = 0
    nll_samples: int = 64

    def missing(self) -> dict[Need, str]:
        """Requirements of measures that the model lacks, each with the reason shown to the user."""
        missing: dict[Need, str] = {}
        if not self.encoded.model.stochastic:
            missing["stochastic encoder"] = "the encoder is deterministic: its posteriors have no sigma"
        if self.encoded.model.prior is not None:
            missing["normal prior"] = "the model's prior is not N(0, I)"
        return missing

    def noise(self, shape: tuple[int, ...], draw: Draw, *counters: int) -> Tensor:
        """Standard normal noise of one measure."""
        return standard_normal(shape, self.seed, "evaluate", draw, *counters)

    def generator(self, draw: Draw) -> torch.Generator:
        """Other randomness of one measure."""
        return generator(self.seed, "evaluate", draw)

    def shuffled(self, draw: Draw, *counters: int) -> Tensor:
        """A random order of the rows, (n,)."""
        return shuffled(len(self.encoded.rows), self.seed, "evaluate", draw, *counters)

    def codes(self, draw: Draw) -> Tensor:
        """One code of every row, (n, d_z): z ~ q(z|x), or mu where the encoder is deterministic."""
        q = self.encoded.posterior
        return q.sample(self.noise(tuple(q.mu.shape), draw))

    def prior_codes(self, n: int) -> Tensor:
        """Draws from N(0, I), (n, d_z)."""
        return self.noise((n, self.encoded.posterior.latent_dim), Draw.PRIOR)

    @cached_property
    def errors(self) -> RowErrors:
        """Reconstruction of every row from z ~ q(z|x)."""
        return row_errors(self.encoded, self.codes(Draw.RECONSTRUCTION))

    @cached_property
    def errors_at_mu(self) -> RowErrors:
        """Reconstruction of every row from z = mu."""
        return row_errors(self.encoded, self.encoded.posterior.mu)

    @cached_property
    def log_ratio(self) -> Tensor:
        """log q(z_i|D) − log p(z_i) at z_i ~ q_i, nats, (n,)."""
        return self.log_ratio_at(self.codes(Draw.AGGREGATE))

    @torch.no_grad()
    def log_ratio_at(self, z: Tensor) -> Tensor:
        """log q(z|D) − log p(z) of codes z (K, d_z), nats, (K,), computed in parts."""
        q = self.encoded.posterior
        # Every part must be large enough to be computed as the whole is: streaming, in float64.
        parts = torch.tensor_split(z, max(1, len(z) // max(_RATIO_ROWS, math.ceil(LEAST_PAIRS / len(q)))))
        prior = StandardNormal(q.latent_dim)
        return torch.cat([(log_aggregate(q, codes) - prior.log_prob(codes)).double() for codes in parts])


def standard_error(values: Tensor) -> float:
    """Standard deviation of the mean of independent values (n,); NaN for a single value."""
    return float(values.double().std()) / math.sqrt(len(values)) if len(values) > 1 else math.nan
