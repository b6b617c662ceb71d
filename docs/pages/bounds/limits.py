"""Limits of the aggregate KL's estimates: at collapse, without overlap, and of a batch against the dataset."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from docs.pages.bounds.reference import reference, with_control_variate
from torch import Tensor

from wiseale.divergences import kl_aggregate_upper_bound, kl_posterior_prior, log_aggregate
from wiseale.paper.toy_values import NO_OVERLAP_GAP, kl_by_quadrature
from wiseale.posterior import LOG_2PI, Posterior
from wiseale.randomness import generator


@dataclass(frozen=True)
class CollapseRow:
    """The bounds when every posterior equals the prior and the exact value is 0, nats."""

    latent_dim: int
    jensen: float
    jensen_closed_form: float
    bhattacharyya: float


@dataclass(frozen=True)
class SaturationRow:
    """Mean AEVB KL − estimate for M posteriors that do not overlap, nats: the most an aggregate prior can save."""

    latent_dim: int
    batch_size: int
    exact: float
    bhattacharyya: float
    jensen: float
    jensen_closed_form: float


@dataclass(frozen=True)
class BiasRow:
    """Mean over batches of an estimate, minus the same estimate on the whole dataset, nats.

    ``exact`` equals E_B KL(q_B ‖ q_D) ≥ 0 and lies between ``floor`` and ``ceiling`` (docs/bounds.md derives both).
    """

    latent_dim: int
    sigma: float
    dataset_size: int
    batch_size: int
    batches: int
    dataset_kl: float
    exact: float
    exact_standard_error: float
    jensen: float
    bhattacharyya: float
    floor: float
    ceiling: float


@torch.no_grad()
def collapse_rows(dimensions: Sequence[int]) -> list[CollapseRow]:
    """The bounds for 64 posteriors equal to the prior, in each latent dimension."""
    rows = []
    for d in dimensions:
        q = Posterior(torch.zeros(64, d, dtype=torch.float64), torch.ones(64, d, dtype=torch.float64))
        jensen, bhattacharyya = (float(kl_aggregate_upper_bound(q, e)) for e in ("jensen", "bhattacharyya"))
        rows.append(CollapseRow(d, jensen, NO_OVERLAP_GAP * d, bhattacharyya))
    return rows


@torch.no_grad()
def saturation_rows(dimensions: Sequence[int], batch_sizes: Sequence[int], seed: int) -> list[SaturationRow]:
    """The saving for posteriors of sigma 0.01 on a line, 40 sigma apart along the first axis."""
    rows = []
    for d in dimensions:
        for m in batch_sizes:
            mu = torch.zeros(m, d, dtype=torch.float64)
            mu[:, 0] = 0.4 * (torch.arange(m, dtype=torch.float64) - (m - 1) / 2)
            q = Posterior(mu, torch.full_like(mu, 0.01))
            aevb = float(kl_posterior_prior(q).mean())
            exact = reference(q, 4, generator(seed, "evaluate", d, m)).kl
            jensen, bhattacharyya = (float(kl_aggregate_upper_bound(q, e)) for e in ("jensen", "bhattacharyya"))
            closed = math.log(m) - NO_OVERLAP_GAP * d
            rows.append(SaturationRow(d, m, aevb - exact, aevb - bhattacharyya, aevb - jensen, closed))
    return rows


def tiling(per_axis: int, latent_dim: int, sigma: float) -> Posterior:
    """A product grid of posteriors of width sigma, means at quantiles of N(0, 1 − σ²): nearly N(0, I) on average."""
    levels = (torch.arange(per_axis, dtype=torch.float64) + 0.5) / per_axis
    quantiles = math.sqrt(1 - sigma**2) * torch.special.ndtri(levels)
    mu = torch.cartesian_prod(*[quantiles] * latent_dim).view(-1, latent_dim)
    return Posterior(mu, torch.full_like(mu, sigma))


@torch.no_grad()
def bias_rows(
    per_axis: int, latent_dim: int, sigma: float, batch_sizes: Sequence[int], batches: int, seed: int
) -> list[BiasRow]:
    """Bias of batches drawn without replacement from a dataset of posteriors that tile the prior."""
    dataset = tiling(per_axis, latent_dim, sigma)
    n = len(dataset)
    aevb = float(kl_posterior_prior(dataset).mean())
    whole = _exact_and_bounds(dataset)
    # Mean χ²(q_i ‖ q_D); the grid is a product over axes, so 1 + χ² is a power of the one-dimensional value.
    chi_square = _mean_square_ratio(tiling(per_axis, 1, sigma)) ** latent_dim - 1
    rows = []
    for m in batch_sizes:
        noise = generator(seed, "evaluate", latent_dim, m)
        drawn = [dataset[torch.randperm(n, generator=noise)[:m]] for _ in range(batches)]
        # Control variate: the expectation of a batch's mean AEVB KL is known, the dataset's. Removes most variance.
        control = torch.stack([kl_posterior_prior(batch).mean() for batch in drawn])[:, None] - aevb
        values = torch.stack([_exact_and_bounds(batch) for batch in drawn])
        reduced = torch.cat([with_control_variate(column, control) for column in torch.split(values, 1, 1)], 1)
        exact, jensen, bhattacharyya = (reduced.mean(0) - whole).tolist()
        rows.append(
            BiasRow(
                latent_dim=latent_dim,
                sigma=sigma,
                dataset_size=n,
                batch_size=m,
                batches=batches,
                dataset_kl=float(whole[0]),
                exact=exact,
                exact_standard_error=float(reduced[:, 0].std()) / math.sqrt(batches),
                jensen=jensen,
                bhattacharyya=bhattacharyya,
                floor=max(0.0, aevb - math.log(m) - float(whole[0])),
                ceiling=min(aevb - float(whole[0]), math.log1p(chi_square * (n - m) / (m * (n - 1)))),
            )
        )
    return rows


def _exact_and_bounds(posterior: Posterior) -> Tensor:
    """Exact aggregate KL, jensen and bhattacharyya, nats, (3,)."""
    bounds = [float(kl_aggregate_upper_bound(posterior, e)) for e in ("jensen", "bhattacharyya")]
    return torch.tensor([kl_by_quadrature(posterior), *bounds], dtype=torch.float64)


def _mean_square_ratio(dataset: Posterior) -> float:
    """mean_i ∫ q_i² / q_D dz = 1 + mean_i χ²(q_i ‖ q_D) for a 1-D dataset with one sigma, by the trapezium rule."""
    sigma = float(dataset.scale[0, 0])
    reach = float(dataset.mu.max()) + 9 * sigma
    step = sigma / 8
    z = torch.arange(-reach, reach + step, step, dtype=torch.float64)
    log_q = -0.5 * (((z - dataset.mu) / sigma).square() + LOG_2PI) - math.log(sigma)
    return float((2 * log_q - log_aggregate(dataset, z[:, None])).exp().sum()) * step / len(dataset)
