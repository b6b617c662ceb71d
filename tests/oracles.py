"""What the code under test is checked against: closed forms, quadrature and plain double sums, in float64 numpy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import integrate, special, stats


def aggregate_kl_by_quadrature(mu, sigma) -> float:
    """D_KL of an equal-weight mixture of 1-D Gaussians from N(0, 1), by adaptive quadrature around every component."""
    mu, sigma = np.asarray(mu, float), np.asarray(sigma, float)

    def integrand(z):
        log_q = special.logsumexp(stats.norm.logpdf(z, mu, sigma)) - np.log(len(mu))
        return np.exp(log_q) * (log_q - stats.norm.logpdf(z))

    edges = np.unique(np.concatenate([mu + k * sigma for k in (-12, -6, -3, -1, 0, 1, 3, 6, 12)]))
    return sum(
        integrate.quad(integrand, low, high, epsabs=1e-12, epsrel=1e-11, limit=200)[0] for low, high in pairwise(edges)
    )


def log_overlap_by_quadrature(mu_i, sigma_i, mu_j, sigma_j) -> float:
    """log ∫ q_i q_j dz in one dimension."""
    low, high = min(mu_i, mu_j) - 12 * max(sigma_i, sigma_j), max(mu_i, mu_j) + 12 * max(sigma_i, sigma_j)
    value, _ = integrate.quad(
        lambda z: stats.norm.pdf(z, mu_i, sigma_i) * stats.norm.pdf(z, mu_j, sigma_j),
        low,
        high,
        points=[mu_i, mu_j],
        limit=400,
        epsabs=1e-14,
    )
    return float(np.log(value))


def bhattacharyya_by_quadrature(mu_i, sigma_i, mu_j, sigma_j) -> float:
    """−log ∫ √(q_i q_j) dz in one dimension."""
    low, high = min(mu_i, mu_j) - 20 * max(sigma_i, sigma_j), max(mu_i, mu_j) + 20 * max(sigma_i, sigma_j)
    value, _ = integrate.quad(
        lambda z: np.sqrt(stats.norm.pdf(z, mu_i, sigma_i) * stats.norm.pdf(z, mu_j, sigma_j)),
        low,
        high,
        points=[mu_i, mu_j],
        limit=400,
        epsabs=1e-14,
    )
    return float(-np.log(value))


def kl_by_quadrature(mu_i, sigma_i, mu_j, sigma_j) -> float:
    """D_KL[q_i ‖ q_j] in one dimension."""
    value, _ = integrate.quad(
        lambda z: (
            stats.norm.pdf(z, mu_i, sigma_i)
            * (stats.norm.logpdf(z, mu_i, sigma_i) - stats.norm.logpdf(z, mu_j, sigma_j))
        ),
        mu_i - 12 * sigma_i,
        mu_i + 12 * sigma_i,
        epsabs=1e-13,
        limit=400,
    )
    return float(value)
