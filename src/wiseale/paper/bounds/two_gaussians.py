"""The paper's toy example: AEVB's and WiSE-ALE's prior terms of two posteriors at mu = ±1 against their sigma."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from wiseale.divergences import kl_aggregate_lower_bound, kl_aggregate_upper_bound, kl_posterior_prior
from wiseale.paper.bounds.reference import kl_by_quadrature
from wiseale.posterior import Posterior

TOLERANCE = 0.1  # nats above a minimum that still count as low


@dataclass(frozen=True)
class TwoGaussiansRow:
    """The prior terms at one sigma, nats; ``information`` is I(x; z) = aevb − exact, at most log 2."""

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


def two_posteriors(sigma: float) -> Posterior:
    """Two posteriors at mu = −1 and 1 with a common sigma."""
    mu = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    return Posterior(mu, torch.full_like(mu, sigma))


QUANTITIES: dict[str, Callable[[Posterior], float]] = {
    "aevb": lambda q: float(kl_posterior_prior(q).mean()),
    "exact": kl_by_quadrature,
    "jensen": lambda q: float(kl_aggregate_upper_bound(q, "jensen")),
    "bhattacharyya": lambda q: float(kl_aggregate_upper_bound(q, "bhattacharyya")),
    "pairwise_kl": lambda q: float(kl_aggregate_lower_bound(q)),
}


def two_gaussians_row(sigma: float) -> TwoGaussiansRow:
    """All prior terms at one sigma."""
    q = two_posteriors(sigma)
    values = {name: quantity(q) for name, quantity in QUANTITIES.items()}
    return TwoGaussiansRow(sigma, **values, information=values["aevb"] - values["exact"])


def two_gaussians_curve(points: int) -> list[TwoGaussiansRow]:
    """The curves of Figure 4(d): equally spaced sigma from 0.1 to 1.6."""
    return [two_gaussians_row(float(sigma)) for sigma in np.linspace(0.1, 1.6, points)]


def minima() -> list[MinimumRow]:
    """The minimum of every quantity over sigma in [0.05, 3]."""
    rows = []
    aevb_minimum = 0.5  # at sigma = 1 and mu = ±1: ½(1 + 1 − 1) − log 1
    for name, quantity in QUANTITIES.items():

        def value(sigma: float, of: Callable[[Posterior], float] = quantity) -> float:
            return of(two_posteriors(sigma))

        at = _golden_section(value, 0.05, 3.0)
        low = [_bisect(value, value(at) + TOLERANCE, at, end) for end in (0.05, 3.0)]
        under = [_bisect(value, max(aevb_minimum, value(at)), at, end) for end in (0.05, 3.0)]
        rows.append(MinimumRow(name, at, value(at), *low, *under))
    return rows


def _golden_section(value: Callable[[float], float], low: float, high: float) -> float:
    """Minimise by golden-section search; every quantity here has a single minimum in sigma."""
    ratio = (5**0.5 - 1) / 2
    while high - low > 1e-7:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if value(left) < value(right) else (left, high)
    return (low + high) / 2


def _bisect(value: Callable[[float], float], level: float, inside: float, outside: float) -> float:
    """Find by bisection where the value reaches the level, between a sigma at or below it and one above."""
    while abs(outside - inside) > 1e-6:
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if value(middle) <= level else (inside, middle)
    return inside
