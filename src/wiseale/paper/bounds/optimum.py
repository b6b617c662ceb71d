"""The gap between the paper's bound and the true KL at the optimum of the bound or of the objective (claim C8)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from wiseale.divergences import kl_aggregate_upper_bound, kl_posterior_prior
from wiseale.paper.bounds.reference import kl_by_quadrature
from wiseale.posterior import Posterior
from wiseale.randomness import generator

NO_OVERLAP_GAP = 0.5 * (1 - math.log(2))  # per dimension: the bound less the exact value, at collapse too


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


def minimise(objective: Callable[[Posterior], Tensor], start: Posterior, iterations: int) -> tuple[float, Posterior]:
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
    with torch.no_grad():
        optimal = Posterior(parameters[0].detach(), parameters[1].detach().exp())
        return float(objective(optimal)), optimal


def optimum(latent_dim: int, m: int, starts: int, iterations: int, seed: int) -> OptimumRow:
    """Minimise the paper's bound from random means and widths of about M^(−1/d), which tile the prior."""
    results = []
    for start in range(starts):
        noise = generator(seed, "evaluate", latent_dim, m, start)
        mu, log_width = torch.randn(2, m, latent_dim, generator=noise, dtype=torch.float64)
        sigma = 1.2 * m ** (-1 / latent_dim) * (0.2 * log_width).exp()
        results.append(minimise(kl_aggregate_upper_bound, Posterior(mu, sigma), iterations))
    bound, best = min(results, key=lambda result: result[0])
    exact = kl_by_quadrature(best)
    gap = bound - exact
    worst = max(value for value, _ in results)
    return OptimumRow(latent_dim, m, starts, bound, worst, exact, gap, gap / latent_dim)


def objective_optimum(m: int, x_sigma: float, iterations: int) -> ObjectiveOptimumRow:
    """Minimise the whole objective from means near the data, with AEVB's optimal widths and with widths of 1.2/M."""
    x = torch.special.ndtri((torch.arange(m, dtype=torch.float64) + 0.5) / m)[:, None]

    def objective(posterior: Posterior) -> Tensor:
        error: Tensor = ((posterior.mu - x).square() + posterior.scale.square()).sum(-1).mean()
        return error / (2 * x_sigma**2) + kl_aggregate_upper_bound(posterior)

    shrink = 1 / math.hypot(1, x_sigma)
    starts = [Posterior(x * shrink, torch.full_like(x, x_sigma * shrink)), Posterior(x, torch.full_like(x, 1.2 / m))]
    _, optimal = min((minimise(objective, start, iterations) for start in starts), key=lambda result: result[0])
    with torch.no_grad():
        bound = float(kl_aggregate_upper_bound(optimal))
        exact = kl_by_quadrature(optimal)
        information = float(kl_posterior_prior(optimal).mean()) - exact
    sigma = float(optimal.scale.log().mean().exp())
    return ObjectiveOptimumRow(m, x_sigma, sigma, bound, exact, bound - exact, information / math.log(m))
