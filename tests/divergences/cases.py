"""Posteriors that the tests of this folder share."""

import torch

from wiseale.posterior import Posterior


def random_posterior(m, d, seed=0, spread=1.0, width=0.5):
    g = torch.Generator().manual_seed(seed)
    mu = spread * torch.randn(m, d, generator=g, dtype=torch.float64)
    sigma = width * torch.exp(0.5 * torch.randn(m, d, generator=g, dtype=torch.float64))
    return Posterior(mu, sigma)


def leaf(q, dtype=None):
    """The same posterior as leaves of a new graph."""
    return Posterior(*(part.detach().clone().to(dtype or part.dtype).requires_grad_() for part in (q.mu, q.sigma)))


EXTREMES = {
    "tiny widths": ([[0.0], [1e-3], [1.0]], [[1e-6], [1e-6], [1e-6]]),
    "huge widths": ([[0.0], [5.0], [-7.0]], [[1e3], [1e3], [9e2]]),
    "tiny beside huge": ([[1e4], [-1e4], [0.0]], [[1e-6], [1e3], [1.0]]),
    "far and narrow": ([[1e4], [-1e4], [9999.0]], [[1e-6], [1e-6], [1e-6]]),
    "identical": ([[0.3], [0.3], [0.3]], [[0.2], [0.2], [0.2]]),
    "identical and tiny": ([[0.3], [0.3], [0.3]], [[1e-6], [1e-6], [1e-6]]),
    "alone": ([[2.0]], [[1e-6]]),
}
