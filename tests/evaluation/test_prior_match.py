"""Measures of the aggregate posterior against quadrature in one and two dimensions."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from tests.evaluation import mixtures
from tests.evaluation.models import case_of_posteriors, ignore

from wiseale.evaluation.prior_match import prior_match
from wiseale.evaluation.separation import PRIOR_DRAWS, compactness, jensen_shannon_divergence, mass_covered
from wiseale.posterior import Posterior

COMPONENTS = {
    1: (np.array([[-1.5], [-0.4], [0.3], [1.1], [2.0]]), np.array([[0.3], [0.2], [0.5], [0.25], [0.6]])),
    2: (np.array([[-1, 0.5], [0.8, -0.7], [0.2, 1.2]]), np.array([[0.5, 0.3], [0.6, 0.9], [0.4, 0.5]])),
}


def copies(dimensions, times):
    """Many rows whose mixture is that of the few components, so that few draws per component become many."""
    mu, sigma = COMPONENTS[dimensions]
    return np.tile(mu, (times, 1)), np.tile(sigma, (times, 1))


@pytest.fixture(scope="module", params=COMPONENTS, ids=lambda d: f"{d} dimensions")
def found(request):
    """(dimensions, the measures of many copies)."""
    case = case_of_posteriors(*copies(request.param, 600))
    return request.param, prior_match(case, ignore).measures | compactness(case, ignore).measures


def quadrature(function, dimensions):
    return function(*COMPONENTS[dimensions], *mixtures.grid_of(dimensions, points=1201 if dimensions == 1 else 401))


def test_aggregate_kl_and_mutual_information(found):
    dimensions, measures = found
    exact = quadrature(mixtures.kl_forward, dimensions)
    error = measures["kl_aggregate_mc_standard_error"]
    assert 0 < error < 0.05
    assert measures["kl_aggregate_mc"] == pytest.approx(exact, abs=4 * error)
    mu, sigma = COMPONENTS[dimensions]
    each = (0.5 * (mu**2 + sigma**2 - 1) - np.log(sigma)).sum(1).mean()
    assert measures["kl_posterior_prior"] == pytest.approx(each, rel=1e-5)
    assert measures["mutual_information"] == pytest.approx(each - exact, abs=4 * error)
    assert measures["mutual_information"] <= math.log(len(mu))


def test_the_bounds_lie_around_the_exact_value(found):
    dimensions, measures = found
    exact = quadrature(mixtures.kl_forward, dimensions)
    assert measures["kl_aggregate_lower_bound"] < exact
    assert exact < measures["kl_aggregate_jensen_upper_bound"]
    assert exact < measures["kl_aggregate_bhattacharyya_upper_bound"] <= measures["kl_posterior_prior"]


def test_reverse_kl_and_jensen_shannon(found):
    dimensions, measures = found
    error = measures["kl_reverse_mc_standard_error"]
    assert measures["kl_reverse_mc"] == pytest.approx(quadrature(mixtures.kl_reverse, dimensions), abs=4 * error)
    error = measures["jensen_shannon_mc_standard_error"]
    assert 0 < error < 0.01
    exact = quadrature(mixtures.jensen_shannon, dimensions)
    assert measures["jensen_shannon_mc"] == pytest.approx(exact, abs=4 * error)


def test_jensen_shannon_ends_at_zero_and_log_2():
    assert jensen_shannon_divergence(torch.zeros(9), torch.zeros(9)) == pytest.approx((0, 0), abs=1e-7)
    apart = jensen_shannon_divergence(torch.full((9,), 900.0), torch.full((9,), -900.0))
    assert apart == pytest.approx((math.log(2), 0))


@pytest.mark.parametrize("dimensions", [1, 2, 7, 64])
def test_a_posterior_that_is_the_prior_covers_95_percent_of_it(dimensions):
    case = case_of_posteriors(np.zeros((3, dimensions)), np.ones((3, dimensions)))
    covered = compactness(case, ignore).measures["prior_mass_covered"]
    assert covered == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / PRIOR_DRAWS))


def test_covered_mass_of_two_intervals():
    half = 0.3 * stats.norm.ppf(0.975)
    exact = 2 * (stats.norm.cdf(1 + half) - stats.norm.cdf(1 - half))
    covered = mass_covered(Posterior(torch.tensor([[-1.0], [1.0]]), torch.full((2, 1), 0.3)), torch.randn(20_000, 1))
    assert covered == pytest.approx(exact, abs=0.015)


def test_covered_mass_counts_as_the_definition_does_where_posteriors_are_narrow_and_far():
    generator = np.random.default_rng(0)
    mu = generator.normal(size=(200, 3)) * [1, 30, 1]
    sigma = np.exp(generator.uniform(np.log(1e-4), 0, (200, 3)))
    centres = generator.integers(200, size=500)
    z = mu[centres] + sigma[centres] * generator.normal(size=(500, 3))
    distance = (((z[:, None] - mu) / sigma) ** 2).sum(-1).min(1)
    inside = (distance <= stats.chi2.ppf(0.95, 3)).mean()
    assert 0.9 < inside < 1
    q = Posterior(torch.from_numpy(mu), torch.from_numpy(sigma))
    assert mass_covered(q, torch.from_numpy(z)) == inside
