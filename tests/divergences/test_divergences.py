import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import oracles
from tests.divergences.cases import EXTREMES, leaf, random_posterior

from wiseale.divergences import (
    bhattacharyya_distance,
    kl_aggregate_lower_bound,
    kl_aggregate_mc,
    kl_aggregate_upper_bound,
    kl_pairwise,
    kl_posterior_prior,
    log_aggregate,
    log_aggregate_marginals,
    log_overlap,
)
from wiseale.posterior import Posterior

COLLAPSE_PER_DIMENSION = 0.5 * (1 - math.log(2))
UPPER_BOUNDS = ("jensen", "bhattacharyya", "tightest")
ANALYTIC = {
    "jensen": kl_aggregate_upper_bound,
    "bhattacharyya": lambda q: kl_aggregate_upper_bound(q, "bhattacharyya"),
    "tightest": lambda q: kl_aggregate_upper_bound(q, "tightest"),
    "lower": kl_aggregate_lower_bound,
    "mean aevb": lambda q: kl_posterior_prior(q).mean(),
    "mc": lambda q: kl_aggregate_mc(q, n=2, generator=torch.Generator().manual_seed(0)),
}


def posterior(mu, sigma, dtype=torch.float64):
    mu, sigma = torch.as_tensor(mu, dtype=dtype), torch.as_tensor(sigma, dtype=dtype)
    return Posterior(mu[:, None], sigma[:, None]) if mu.ndim == 1 else Posterior(mu, sigma)


# The checked values of the specification: lower, exact, jensen, bhattacharyya, mean AEVB KL.
CHECKED = [
    ([0.0], [1.0], 0.000000, 0.000000, 0.153426, 0.000000, 0.000000),
    ([-1.0, 1.0], [1.0, 1.0], -0.066219, 0.163169, 0.273541, 0.280930, 0.500000),
    ([-1.0, 1.0], [0.5, 0.5], 0.125335, 0.185427, 0.296576, 0.251928, 0.818147),
    ([-2.0, 2.0], [0.25, 0.25], 2.224397, 2.224397, 2.377824, 2.224397, 2.917544),
]


@pytest.mark.parametrize(("mu", "sigma", "lower", "exact", "jensen", "bhattacharyya", "aevb"), CHECKED)
def test_checked_values_to_six_decimals(mu, sigma, lower, exact, jensen, bhattacharyya, aevb):
    q = posterior(mu, sigma)
    found = [
        kl_aggregate_lower_bound(q),
        oracles.aggregate_kl_by_quadrature(mu, sigma),
        kl_aggregate_upper_bound(q, "jensen"),
        kl_aggregate_upper_bound(q, "bhattacharyya"),
        kl_posterior_prior(q).mean(),
    ]
    assert [float(value) for value in found] == pytest.approx([lower, exact, jensen, bhattacharyya, aevb], abs=5e-7)


@settings(max_examples=25, deadline=None)
@given(  # means in steps of 0.01: the quadrature warns where two of its break points are 1e-300 apart
    st.lists(st.tuples(st.integers(-300, 300), st.floats(0.1, 2.5)), min_size=1, max_size=5),
)
def test_order_of_the_bounds_around_quadrature(components):
    hundredths, sigma = zip(*components, strict=True)
    mu = [h / 100 for h in hundredths]
    q = posterior(mu, sigma)
    exact = oracles.aggregate_kl_by_quadrature(mu, sigma)
    jensen, bhattacharyya = (float(kl_aggregate_upper_bound(q, e)) for e in ("jensen", "bhattacharyya"))
    tightest = float(kl_aggregate_upper_bound(q, "tightest"))
    slack = 1e-7
    assert max(0.0, float(kl_aggregate_lower_bound(q))) <= exact + slack
    assert exact <= tightest + slack
    assert tightest == min(jensen, bhattacharyya)
    assert bhattacharyya <= float(kl_posterior_prior(q).mean()) + slack


@pytest.mark.parametrize("pair", [(0.3, 0.7, -1.1, 0.4), (0.0, 1.0, 0.0, 1.0), (2.0, 0.3, -1.0, 1.5)])
def test_pairwise_kernels_against_quadrature(pair):
    mu_i, sigma_i, mu_j, sigma_j = pair
    left, right = posterior([mu_i], [sigma_i]), posterior([mu_j], [sigma_j])
    assert float(log_overlap(left, right)) == pytest.approx(oracles.log_overlap_by_quadrature(*pair), abs=1e-8)
    assert float(bhattacharyya_distance(left, right)) == pytest.approx(
        oracles.bhattacharyya_by_quadrature(*pair), abs=1e-8
    )
    assert float(kl_pairwise(left, right)) == pytest.approx(oracles.kl_by_quadrature(*pair), abs=1e-8)


def test_pairwise_kernels_add_over_dimensions():
    q = random_posterior(4, 3)
    for kernel in (log_overlap, bhattacharyya_distance, kl_pairwise):
        by_dimension = sum(kernel(*[Posterior(q.mu[:, k : k + 1], q.sigma[:, k : k + 1])] * 2) for k in range(3))
        torch.testing.assert_close(kernel(q, q), by_dimension)


@pytest.mark.parametrize(("m", "d"), [(5, 3), (40, 8)])
def test_monte_carlo_lies_between_the_bounds_in_higher_dimensions(m, d):
    q = random_posterior(m, d, spread=0.8)
    g = torch.Generator().manual_seed(1)
    draws = torch.stack([kl_aggregate_mc(q, generator=g) for _ in range(400)])
    mean, error = float(draws.mean()), float(draws.std()) / math.sqrt(len(draws))
    assert float(kl_aggregate_lower_bound(q)) <= mean + 4 * error
    assert mean <= float(kl_aggregate_upper_bound(q, "tightest")) + 4 * error


def test_monte_carlo_is_unbiased():
    mu, sigma = [-1.3, 0.2, 1.9], [0.5, 0.8, 0.3]
    q = posterior(mu, sigma)
    g = torch.Generator().manual_seed(2)
    draws = torch.stack([kl_aggregate_mc(q, generator=g) for _ in range(3000)])
    error = float(draws.std()) / math.sqrt(len(draws))
    assert float(draws.mean()) == pytest.approx(oracles.aggregate_kl_by_quadrature(mu, sigma), abs=4 * error)


def test_monte_carlo_at_given_codes_is_the_log_ratio_there():
    q = random_posterior(6, 2)
    z = q.sample(torch.randn(6, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64))
    components = torch.distributions.Independent(torch.distributions.Normal(q.mu, q.sigma), 1)
    mixture = torch.distributions.MixtureSameFamily(
        torch.distributions.Categorical(torch.ones(6, dtype=torch.float64)), components
    )
    prior = torch.distributions.Independent(torch.distributions.Normal(torch.zeros(2), torch.ones(2)), 1)
    expected = (mixture.log_prob(z) - prior.log_prob(z)).mean()
    torch.testing.assert_close(kl_aggregate_mc(q, z=z), expected)
    torch.testing.assert_close(log_aggregate(q, z), mixture.log_prob(z))


@pytest.mark.parametrize("arguments", [{"n": 0}, {"n": 2, "z": torch.zeros(3, 2)}])
def test_draws_that_cannot_be_made_are_refused(arguments):
    q = random_posterior(3, 2)
    with pytest.raises(ValueError, match=f"^n .*at least 1.*z.* got {arguments['n']}"):
        kl_aggregate_mc(q, **arguments)


@pytest.mark.parametrize(("m", "d"), [(2, 1), (16, 4), (64, 3)])
def test_separated_limit(m, d):
    """Far apart, bound = mean AEVB KL − log M, plus ½(1 − ln 2) per dimension for the paper's."""
    mu = 1e3 * torch.arange(m, dtype=torch.float64)[:, None].expand(m, d).contiguous()
    q = Posterior(mu, torch.full((m, d), 0.3, dtype=torch.float64))
    saved = kl_posterior_prior(q).mean() - math.log(m)
    torch.testing.assert_close(kl_aggregate_upper_bound(q, "bhattacharyya"), saved)
    torch.testing.assert_close(kl_aggregate_lower_bound(q), saved)
    torch.testing.assert_close(kl_aggregate_upper_bound(q, "jensen"), saved + COLLAPSE_PER_DIMENSION * d)


def test_separated_gradient_is_that_of_aevb():
    mu = torch.tensor([[-50.0], [0.5], [60.0]], dtype=torch.float64, requires_grad=True)
    sigma = torch.tensor([[0.3], [0.7], [1.4]], dtype=torch.float64, requires_grad=True)
    q = Posterior(mu, sigma)
    expected = torch.autograd.grad(kl_posterior_prior(q).mean(), (mu, sigma))
    for estimator in UPPER_BOUNDS:
        found = torch.autograd.grad(kl_aggregate_upper_bound(q, estimator), (mu, sigma))
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("d", [1, 4, 64])
def test_collapse_value(d):
    q = Posterior(torch.zeros(8, d, dtype=torch.float64), torch.ones(8, d, dtype=torch.float64))
    assert float(kl_aggregate_upper_bound(q)) == pytest.approx(COLLAPSE_PER_DIMENSION * d)
    assert float(kl_aggregate_upper_bound(q, "bhattacharyya")) == pytest.approx(0, abs=1e-12)


def test_no_tightest_saving_beyond_log_m():
    q = random_posterior(32, 6, spread=3.0, width=0.1)
    aevb = float(kl_posterior_prior(q).mean())
    assert float(kl_aggregate_upper_bound(q, "bhattacharyya")) >= aevb - math.log(32) - 1e-9
    assert float(kl_aggregate_upper_bound(q, "jensen")) >= aevb - math.log(32) + COLLAPSE_PER_DIMENSION * 6 - 1e-9


@pytest.mark.parametrize("name", [name for name in ANALYTIC if name != "mc"])
def test_invariances(name):
    """Order of the batch, order and reflection of the dimensions, and copies of the whole batch change nothing."""
    function = ANALYTIC[name]
    q = random_posterior(7, 3)
    value = function(q)
    shuffled = q[torch.tensor([3, 1, 6, 0, 2, 5, 4])]
    torch.testing.assert_close(function(shuffled), value)
    torch.testing.assert_close(function(Posterior(q.mu[:, [2, 0, 1]], q.sigma[:, [2, 0, 1]])), value)
    torch.testing.assert_close(function(Posterior(-q.mu, q.sigma)), value)
    torch.testing.assert_close(function(Posterior(q.mu.repeat(3, 1), q.sigma.repeat(3, 1))), value)


@pytest.mark.parametrize("name", ANALYTIC)
@pytest.mark.parametrize("m", [1, 2, 5])
def test_gradcheck(name, m):
    q = random_posterior(m, 2, seed=m)

    def function(mu, log_sigma):
        return ANALYTIC[name](Posterior(mu, log_sigma.exp()))

    assert torch.autograd.gradcheck(function, (q.mu.requires_grad_(), q.sigma.log().requires_grad_()))


def test_blocks_of_rows_against_plain_broadcasts():
    """700² pairs in 3 dimensions are computed in two blocks; here at once, with torch.distributions."""
    q, upstream = random_posterior(700, 3), torch.linspace(-1, 2, 700, dtype=torch.float64)

    def z(q):
        return q.mu.flip(0) + 0.1 * q.sigma  # with a gradient of its own

    def lower(q):
        normal = torch.distributions.Normal(q.mu, q.sigma)
        kl = torch.distributions.kl_divergence(torch.distributions.Normal(q.mu[:, None], q.sigma[:, None]), normal).sum(
            -1
        )
        prior = torch.distributions.Normal(torch.zeros_like(q.mu), 1.0)
        cross_entropy = normal.entropy() + torch.distributions.kl_divergence(normal, prior)
        log_means = (-kl).logsumexp(1) - math.log(700)
        return (log_means - normal.entropy().sum(-1) + cross_entropy.sum(-1)).mean()

    def log_components(q):
        return torch.distributions.Normal(q.mu, q.sigma).log_prob(z(q)[:, None])

    for ours, theirs in [
        (kl_aggregate_lower_bound, lower),
        (
            lambda q: log_aggregate(q, z(q)) @ upstream,
            lambda q: (log_components(q).sum(-1).logsumexp(1) - math.log(700)) @ upstream,
        ),
        (
            lambda q: (upstream @ log_aggregate_marginals(q, z(q))).sum(),
            lambda q: (upstream @ (log_components(q).logsumexp(1) - math.log(700))).sum(),
        ),
    ]:
        left, right = leaf(q), leaf(q)
        found, expected = ours(left), theirs(right)
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
        gradients = [torch.autograd.grad(value, (p.mu, p.sigma)) for value, p in ((found, left), (expected, right))]
        torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-11)
        with torch.no_grad():
            torch.testing.assert_close(ours(q), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("case", EXTREMES)
@pytest.mark.parametrize("name", ANALYTIC)
@pytest.mark.parametrize("d", [1, 64])
@pytest.mark.parametrize("copies", [1, 16])  # of these the compiled kernel takes 16
def test_float32_follows_float64_at_the_extremes(case, name, d, copies):
    mu, sigma = (torch.tensor(v, dtype=torch.float32).repeat(copies, d) for v in EXTREMES[case])
    single = Posterior(mu.clone().requires_grad_(), sigma.clone().requires_grad_())
    value = ANALYTIC[name](single)
    exact = float(ANALYTIC[name](Posterior(mu.double(), sigma.double())))
    assert value.item() == pytest.approx(exact, abs=1e-4 * (1 + abs(exact)))
    value.backward()
    assert all(bool(gradient.isfinite().all()) for gradient in (single.mu.grad, single.sigma.grad))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 8), st.integers(0, 10_000))
def test_float32_follows_float64_at_random(m, d, seed):
    rng = np.random.default_rng(seed)
    mu = torch.tensor(rng.normal(size=(m, d)) * 10 ** rng.uniform(-3, 4), dtype=torch.float32)
    sigma = torch.tensor(10 ** rng.uniform(-6, 3, size=(m, d)), dtype=torch.float32)
    for name, function in ANALYTIC.items():
        single, double = (float(function(Posterior(mu.to(t), sigma.to(t)))) for t in (torch.float32, torch.float64))
        assert single == pytest.approx(double, abs=1e-4 * (1 + abs(double))), name


def test_unknown_estimator_is_refused():
    with pytest.raises(ValueError, match="'jensen'"):
        kl_aggregate_upper_bound(random_posterior(2, 1), "exact")


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"\(M, d_z\)"):
        Posterior(torch.zeros(3), torch.ones(3))
