"""Error of every estimate of the aggregate KL on random mixtures: estimate − exact, nats."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Literal

import numpy as np
import torch
from docs.pages.bounds.reference import reference
from torch import Tensor

from wiseale.divergences import (
    cross_entropy_prior,
    kl_aggregate_lower_bound,
    kl_aggregate_upper_bound,
    kl_posterior_prior,
    log_overlap,
)
from wiseale.posterior import Posterior
from wiseale.randomness import generator

Varied = Literal["sigma", "separation", "batch_size"]

SIGMA_JITTER = 0.25  # standard deviation of log sigma over posteriors and axes
PAPER_BATCH = 64
PARTIAL_OVERLAP = math.sqrt(10)  # spread/sigma of partly overlapping posteriors; like 1, a point of every grid


@dataclass(frozen=True)
class Effort:
    """How much is computed.

    Attributes:
        points: points of a sweep, 1 + a multiple of 6.
        mixtures: random mixtures per point.
        draws: Monte Carlo draws per posterior.
        max_batch_size: largest batch size of a sweep.
        dimensions: latent dimensions.
    """

    points: int
    mixtures: int
    draws: int
    max_batch_size: int
    dimensions: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class ErrorRow:
    """One point of a sweep: means over ``mixtures`` random mixtures, nats.

    From ``jensen`` to ``mean_aevb`` the numbers are estimate − exact; ``_sd`` is the standard deviation over mixtures.
    ``mc_standard_error`` and ``controlled_standard_error`` are for one draw from each posterior, the latter with a
    control variate.
    """

    varied: Varied
    latent_dim: int
    batch_size: int
    spread: float
    sigma: float
    mixtures: int
    exact: float
    exact_standard_error: float
    jensen: float
    bhattacharyya: float
    tightest: float
    pairwise_kl: float
    second_jensen: float
    mean_aevb: float
    jensen_sd: float
    bhattacharyya_sd: float
    pairwise_kl_sd: float
    mc_standard_error: float
    controlled_standard_error: float


def kl_second_jensen_upper_bound(posterior: Posterior) -> Tensor:
    """The bound after a second Jensen step, log mean_ij ∫ q_i q_j + cross-entropy, nats, ().

    It is never below eq:KL-UB, with which it is sometimes confused.
    """
    pairs = log_overlap(posterior, posterior)
    return pairs.flatten().logsumexp(0) - 2 * math.log(len(posterior)) + cross_entropy_prior(posterior)


def random_posterior(m: int, latent_dim: int, spread: float, sigma: float, noise: torch.Generator) -> Posterior:
    """m random posteriors: means from N(0, spread²·I), widths sigma·exp(0.25·N(0, 1)) on every axis, float64."""
    mu = torch.randn(m, latent_dim, generator=noise, dtype=torch.float64)
    log_width = torch.randn(m, latent_dim, generator=noise, dtype=torch.float64)
    return Posterior(spread * mu, sigma * (SIGMA_JITTER * log_width).exp())


def unit_variance(ratio: float) -> tuple[float, float]:
    """(spread, sigma) with spread/sigma = ratio and spread² + sigma² = 1, the prior's variance.

    >>> unit_variance(0.75)
    (0.6000000000000001, 0.8)
    """
    sigma = 1 / math.hypot(1, ratio)
    return ratio * sigma, sigma


def error_row(
    varied: Varied, latent_dim: int, m: int, spread: float, sigma: float, effort: Effort, seed: int
) -> ErrorRow:
    """Errors at one point; the noise does not depend on spread and sigma, so that sweeps over them are smooth."""
    exact, upper, below = [], [], []
    for mixture in range(effort.mixtures):
        noise = generator(seed, "evaluate", latent_dim, m, mixture)
        q = random_posterior(m, latent_dim, spread, sigma, noise)
        truth = reference(q, effort.draws, noise)
        exact.append(truth)
        jensen, bhattacharyya = (float(kl_aggregate_upper_bound(q, e)) - truth.kl for e in ("jensen", "bhattacharyya"))
        second, aevb = float(kl_second_jensen_upper_bound(q)), float(kl_posterior_prior(q).mean())
        upper.append((jensen, bhattacharyya, min(jensen, bhattacharyya), second - truth.kl, aevb - truth.kl))
        below.append(float(kl_aggregate_lower_bound(q)) - truth.kl)
    jensens, bhattacharyyas, tightest, seconds, aevbs = zip(*upper, strict=True)
    return ErrorRow(
        varied=varied,
        latent_dim=latent_dim,
        batch_size=m,
        spread=spread,
        sigma=sigma,
        mixtures=effort.mixtures,
        exact=fmean(truth.kl for truth in exact),
        exact_standard_error=math.hypot(*(truth.standard_error for truth in exact)) / effort.mixtures,
        jensen=fmean(jensens),
        bhattacharyya=fmean(bhattacharyyas),
        tightest=fmean(tightest),
        pairwise_kl=fmean(below),
        second_jensen=fmean(seconds),
        mean_aevb=fmean(aevbs),
        jensen_sd=pstdev(jensens),
        bhattacharyya_sd=pstdev(bhattacharyyas),
        pairwise_kl_sd=pstdev(below),
        mc_standard_error=fmean(truth.mc_standard_error for truth in exact),
        controlled_standard_error=fmean(truth.controlled_standard_error for truth in exact),
    )


@torch.no_grad()
def error_rows(effort: Effort, seed: int) -> Iterator[ErrorRow]:
    """Errors against sigma, against separation in every latent dimension, and against the batch size."""
    for latent_dim in (1, 2):
        for sigma in np.geomspace(0.02, 2, effort.points):
            yield error_row("sigma", latent_dim, 16, 1.0, float(sigma), effort, seed)
    for latent_dim in effort.dimensions:
        for ratio in np.geomspace(0.1, 100, effort.points):
            yield error_row("separation", latent_dim, PAPER_BATCH, *unit_variance(float(ratio)), effort, seed)
    for latent_dim, ratio in ((1, PARTIAL_OVERLAP), (2, PARTIAL_OVERLAP), (8, 1.0)):
        for m in powers_of_two(2, effort.max_batch_size):
            yield error_row("batch_size", latent_dim, m, *unit_variance(ratio), effort, seed)


def rows_varying(rows: Sequence[ErrorRow], varied: Varied) -> list[ErrorRow]:
    """The rows of one sweep."""
    return [row for row in rows if row.varied == varied]


def powers_of_two(low: int, high: int) -> list[int]:
    """low, 2·low, 4·low, … up to high.

    >>> powers_of_two(2, 16)
    [2, 4, 8, 16]
    """
    return [low << k for k in range(int(math.log2(high / low)) + 1)]
