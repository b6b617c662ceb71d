"""The numbers behind Figure 4, C4 and C8: prior terms of two posteriors, and optima of the paper's bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from wiseale.divergences import (
    cross_entropy_prior,
    kl_aggregate_lower_bound,
    kl_aggregate_upper_bound,
    kl_posterior_prior,
)
from wiseale.posterior import Posterior
from wiseale.randomness import generator

TOLERANCE = 0.1  # nats above a minimum that still count as low
NO_OVERLAP_GAP = 0.5 * (1 - math.log(2))  # per dimension: the bound less the exact value, at collapse too
QUADRATURE_DIMENSIONS = 2

_REACH = 9.0  # standard deviations on either side of a mean; the mass beyond is 1e-19
_POINTS_PER_SIGMA = {1: 8, 2: 4}  # by dimension, sigma of the narrowest posterior: errors of about 1e-12 and 1e-8 nats
_BLOCK_POINTS = 1 << 21


def kl_by_quadrature(posterior: Posterior) -> float:
    """D_KL[q(z|B_M) ‖ N(0, I)] for d_z = 1 or 2, nats: ∫ q log q on a grid, the cross-entropy in closed form."""
    return negative_entropy(posterior) + float(cross_entropy_prior(posterior))


def negative_entropy(posterior: Posterior) -> float:
    """∫ q log q of the aggregate posterior by the trapezium rule (converges exponentially for Gaussians), nats.

    A diagonal Gaussian is a product over the axes, so the mixture on a 2-D grid is one matrix product.
    """
    if posterior.latent_dim > QUADRATURE_DIMENSIONS:
        raise ValueError(f"quadrature needs d_z ≤ {QUADRATURE_DIMENSIONS}, got {posterior.latent_dim}")
    first, step = _density_on_axis(posterior, 0)
    second, other_step = torch.ones(len(posterior), 1, dtype=first.dtype), 1.0
    if posterior.latent_dim == QUADRATURE_DIMENSIONS:
        second, other_step = _density_on_axis(posterior, 1)
    total = 0.0
    for block in torch.split(first.T, max(1, _BLOCK_POINTS // second.shape[1])):
        q = block @ second / len(posterior)
        total += float(torch.xlogy(q, q).sum())
    return total * step * other_step


def _density_on_axis(posterior: Posterior, axis: int) -> tuple[Tensor, float]:
    """Every posterior's density on a uniform grid along one axis, (M, points), and the grid's step."""
    mu, sigma = posterior.mu[:, axis], posterior.scale[:, axis]
    step = float(sigma.min()) / _POINTS_PER_SIGMA[posterior.latent_dim]
    low, high = float((mu - _REACH * sigma).min()), float((mu + _REACH * sigma).max())
    z = low + step * torch.arange(math.ceil((high - low) / step) + 1, dtype=mu.dtype)
    standardised = (z - mu[:, None]) / sigma[:, None]
    return (-0.5 * standardised.square()).exp() / (sigma[:, None] * math.sqrt(2 * math.pi)), step


@dataclass(frozen=True)
class TwoGaussiansRow:
    """Prior terms of two posteriors at mu = ±1 with one sigma, nats; ``information`` is I(x; z) = aevb − exact."""

    sigma: float
    aevb: float
    exact: float
    jensen: float
    bhattacharyya: float
    pairwise_kl: float
    information: float


@dataclass(frozen=True)
class MinimumRow:
    """The minimum of a quantity over sigma, and the range of sigma where it is within ``TOLERANCE`` of that minimum.

    It is at most AEVB's own minimum, 0.5, for sigma from ``under_aevb_from`` to ``under_aevb_to``.
    """

    quantity: str
    sigma: float
    minimum: float
    low_from: float
    low_to: float
    under_aevb_from: float
    under_aevb_to: float


_QUANTITIES: dict[str, Callable[[Posterior], float]] = {
    "aevb": lambda q: float(kl_posterior_prior(q).mean()),
    "exact": kl_by_quadrature,
    "jensen": lambda q: float(kl_aggregate_upper_bound(q, "jensen")),
    "bhattacharyya": lambda q: float(kl_aggregate_upper_bound(q, "bhattacharyya")),
    "pairwise_kl": lambda q: float(kl_aggregate_lower_bound(q)),
}


def _two_posteriors(sigma: float) -> Posterior:
    mu = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    return Posterior(mu, torch.full_like(mu, sigma))


def two_gaussians_row(sigma: float) -> TwoGaussiansRow:
    """All prior terms at one sigma."""
    values = {name: quantity(_two_posteriors(sigma)) for name, quantity in _QUANTITIES.items()}
    return TwoGaussiansRow(sigma, **values, information=values["aevb"] - values["exact"])


def two_gaussians_curve(points: int) -> list[TwoGaussiansRow]:
    """The curves of Figure 4(d): equally spaced sigma from 0.1 to 1.6."""
    return [two_gaussians_row(float(sigma)) for sigma in np.linspace(0.1, 1.6, points)]


def minima() -> list[MinimumRow]:
    """The minimum of every quantity over sigma in [0.05, 3]; each has a single one."""
    rows = []
    ends = (0.05, 3.0)
    aevb_minimum = 0.5  # at sigma = 1 and mu = ±1: ½(1 + 1 − 1) − log 1
    for name, quantity in _QUANTITIES.items():

        def value(sigma: float, of: Callable[[Posterior], float] = quantity) -> float:
            return of(_two_posteriors(sigma))

        at = float(minimize_scalar(value, bounds=ends, method="bounded", options={"xatol": 1e-8}).x)
        low = [_bisect(value, value(at) + TOLERANCE, at, end) for end in ends]
        under = [_bisect(value, max(aevb_minimum, value(at)), at, end) for end in ends]
        rows.append(MinimumRow(name, at, value(at), *low, *under))
    return rows


def _bisect(value: Callable[[float], float], level: float, inside: float, outside: float) -> float:
    """Where the value reaches the level, between a sigma at or below it and one above, or ``outside``."""
    while abs(outside - inside) > 1e-6:
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if value(middle) <= level else (inside, middle)
    return inside


@dataclass(frozen=True)
class OptimumRow:
    """The smallest value of eq:KL-UB over all (mu, sigma) of M posteriors, nats; the best of several starts.

    ``worst_bound`` is the value that the worst start reached: far above ``bound``, there are many local minima.
    """

    latent_dim: int
    batch_size: int
    starts: int
    bound: float
    worst_bound: float
    exact: float
    gap: float
    gap_per_dimension: float


@dataclass(frozen=True)
class ObjectiveOptimumRow:
    """The optimum of reconstruction + prior for M scalars at the prior's quantiles and the decoder x̂ = z, d_z = 1.

    The reconstruction term is E‖x_i − z‖²/(2·x_sigma²) and the bound has weight 1; a small ``x_sigma`` favours
    posteriors that do not overlap. ``apart`` is I(x; z) / log M, in [0, 1].
    """

    batch_size: int
    x_sigma: float
    sigma: float
    bound: float
    exact: float
    gap: float
    apart: float


def optimum(latent_dim: int, m: int, starts: int, iterations: int, seed: int) -> OptimumRow:
    """Minimise the paper's bound from random means and widths of about M^(−1/d), which tile the prior."""
    results = []
    for start in range(starts):
        noise = generator(seed, "evaluate", latent_dim, m, start)
        mu, log_width = torch.randn(2, m, latent_dim, generator=noise, dtype=torch.float64)
        sigma = 1.2 * m ** (-1 / latent_dim) * (0.2 * log_width).exp()
        results.append(_minimise(kl_aggregate_upper_bound, Posterior(mu, sigma), iterations))
    bound, best = min(results, key=lambda result: result[0])
    worst, exact = max(value for value, _ in results), kl_by_quadrature(best)
    gap = bound - exact
    return OptimumRow(latent_dim, m, starts, bound, worst, exact, gap, gap / latent_dim)


def objective_optimum(m: int, x_sigma: float, iterations: int) -> ObjectiveOptimumRow:
    """Minimise the whole objective from means near the data, with AEVB's optimal widths and with widths of 1.2/M."""
    x = torch.special.ndtri((torch.arange(m, dtype=torch.float64) + 0.5) / m)[:, None]

    def objective(posterior: Posterior) -> Tensor:
        error: Tensor = ((posterior.mu - x).square() + posterior.scale.square()).sum(-1).mean()
        return error / (2 * x_sigma**2) + kl_aggregate_upper_bound(posterior)

    shrink = 1 / math.hypot(1, x_sigma)
    starts = [Posterior(x * shrink, torch.full_like(x, x_sigma * shrink)), Posterior(x, torch.full_like(x, 1.2 / m))]
    _, optimal = min((_minimise(objective, start, iterations) for start in starts), key=lambda result: result[0])
    bound, exact = float(kl_aggregate_upper_bound(optimal)), kl_by_quadrature(optimal)
    information = float(kl_posterior_prior(optimal).mean()) - exact
    sigma = float(optimal.scale.log().mean().exp())
    return ObjectiveOptimumRow(m, x_sigma, sigma, bound, exact, bound - exact, information / math.log(m))


def _minimise(objective: Callable[[Posterior], Tensor], start: Posterior, iterations: int) -> tuple[float, Posterior]:
    """Minimise over mu and log sigma with L-BFGS in float64; returns the smallest value and its posteriors."""
    parameters = torch.stack((start.mu, start.scale.log())).requires_grad_()
    optimiser = torch.optim.LBFGS(
        [parameters],
        max_iter=iterations,
        history_size=30,
        tolerance_grad=1e-8,
        tolerance_change=1e-12,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = objective(Posterior(parameters[0], parameters[1].exp()))
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    mu, log_sigma = parameters.detach()
    optimal = Posterior(mu, log_sigma.exp())
    return float(objective(optimal)), optimal
