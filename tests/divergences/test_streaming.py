"""Streamed sums over many pairs against plain sums in extended precision, and against the path with a gradient."""

import math

import numpy as np
import pytest
import torch

from wiseale.divergences import (
    kl_aggregate_lower_bound,
    kl_aggregate_mc,
    kl_aggregate_upper_bound,
    log_aggregate,
    streaming,
)
from wiseale.divergences.streaming import LEAST_PAIRS, log_sum_density, log_sum_kl, log_sum_symmetric, streams
from wiseale.posterior import Posterior

M = 37
TILE = (4, 16)  # several tiles for M rows, some of them cut off


def posterior(d, spread, narrow=1e-4, wide=10.0, seed=0, m=M):
    rng = np.random.default_rng(seed)
    sigma = np.exp(rng.uniform(math.log(narrow), math.log(wide), (m, d)))
    mu = spread * rng.normal(size=(m, d))
    mu[5], sigma[5] = mu[2], sigma[2]  # a pair of equals
    mu[7] = mu[3] + sigma[3]  # and one that overlaps, whatever the spread
    return Posterior(torch.from_numpy(mu), torch.from_numpy(sigma))


def extended(q):
    """mu and sigma facing each other, (M, 1, d) and (1, M, d), in extended precision."""
    mu, sigma = (part.numpy().astype(np.longdouble) for part in (q.mu, q.sigma))
    return mu[:, None], mu[None], sigma[:, None], sigma[None]


def log_sum(exponents):
    peak = exponents.max(1)
    return peak + np.log(np.exp(exponents - peak[:, None]).sum(1))


CASES = [(d, spread) for d in (1, 2, 5, 40) for spread in (0.0, 1.0, 1e3)]


@pytest.mark.parametrize(("d", "spread"), CASES)
@pytest.mark.parametrize(("quadratic", "own"), [(0.5, 0.0), (0.25, 0.5)])
def test_symmetric_kernels(d, spread, quadratic, own):
    q = posterior(d, spread)
    mu_i, mu_j, sigma_i, sigma_j = extended(q)
    v = sigma_i**2 + sigma_j**2
    k = -(quadratic * (mu_i - mu_j) ** 2 / v + 0.5 * np.log(v)).sum(2) + own * np.log(sigma_i * sigma_j).sum(2)
    np.testing.assert_allclose(
        log_sum_symmetric(q, quadratic, own, TILE), log_sum(k).astype(float), rtol=1e-11, atol=1e-11
    )


@pytest.mark.parametrize(("d", "spread"), CASES)
def test_pairwise_kl(d, spread):
    q = posterior(d, spread)
    mu_i, mu_j, sigma_i, sigma_j = extended(q)
    kl = (0.5 * (((mu_i - mu_j) ** 2 + sigma_i**2) / sigma_j**2 - 1) + np.log(sigma_j / sigma_i)).sum(2)
    np.testing.assert_allclose(log_sum_kl(q, TILE), log_sum(-kl).astype(float), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("d", "spread"), CASES)
@pytest.mark.parametrize("still", [True, False])
def test_densities(d, spread, still):
    q = posterior(d, spread)
    offset = torch.zeros_like(q.mu) if still else q.sigma * torch.randn(M, d, dtype=torch.float64)
    centre = q.mu + (0.3 if still else 0.0)
    _, mu_j, _, sigma_j = extended(q)
    z = centre.numpy().astype(np.longdouble)[:, None] + offset.numpy()[:, None]
    log_q = -(0.5 * ((z - mu_j) / sigma_j) ** 2 + np.log(sigma_j) + 0.5 * np.log(2 * np.longdouble(np.pi))).sum(2)
    np.testing.assert_allclose(log_sum_density(centre, offset, q, TILE), log_sum(log_q).astype(float), rtol=1e-10)


ESTIMATORS = {
    "jensen": lambda q: kl_aggregate_upper_bound(q, "jensen"),
    "bhattacharyya": lambda q: kl_aggregate_upper_bound(q, "bhattacharyya"),
    "tightest": lambda q: kl_aggregate_upper_bound(q, "tightest"),
    "lower": kl_aggregate_lower_bound,
    "mc": lambda q: kl_aggregate_mc(q, generator=torch.Generator().manual_seed(0)),
    "density": lambda q: log_aggregate(q, q.mu.flip(0)).sum(),
}


MANY = 1030  # 1030² pairs are streamed


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(("d", "spread"), [(2, 1.0), (40, 3.0)])
def test_values_are_those_of_the_path_with_a_gradient(name, d, spread, monkeypatch):
    """In 40 dimensions sigma from 1e-6 to 1e3 leaves the range of float64: the other path is taken then."""
    monkeypatch.setattr(streaming, "LEAST_PAIRS", 1)
    for narrow, wide in ((1e-4, 10.0), (1e-6, 1e3)):
        q = posterior(d, spread, narrow, wide, m=300)
        with_gradient = ESTIMATORS[name](Posterior(q.mu.clone().requires_grad_(), q.sigma.clone().requires_grad_()))
        with torch.no_grad():
            assert float(ESTIMATORS[name](q)) == pytest.approx(float(with_gradient), rel=1e-9)
    assert log_sum_symmetric(posterior(40, 1.0, 1e-6, 1e3), 0.5, 0.0) is None


def test_which_sums_are_streamed():
    """Those over many pairs, on the CPU, without a gradient."""
    q = posterior(2, 1.0)
    needed = q.mu.clone().requires_grad_()
    assert streams(LEAST_PAIRS, q.mu, q.sigma)
    assert not streams(LEAST_PAIRS - 1, q.mu, q.sigma)
    assert not streams(LEAST_PAIRS, needed, q.sigma)
    assert not streams(LEAST_PAIRS, q.mu, torch.empty(1, device="meta"))
    with torch.no_grad():
        assert streams(LEAST_PAIRS, needed, q.sigma)


def test_float32_comes_back_as_float32():
    q = posterior(2, 1.0, m=MANY)
    single = Posterior(q.mu.float(), q.sigma.float())
    for estimator in ESTIMATORS.values():
        assert estimator(single).dtype == torch.float32
    exact = kl_aggregate_upper_bound(Posterior(single.mu.double(), single.sigma.double()))
    assert float(kl_aggregate_upper_bound(single)) == pytest.approx(float(exact), rel=1e-6)
