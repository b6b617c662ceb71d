"""The exact reconstruction: against every pair written out, and its bound against a model solved in closed form."""

import numpy as np
import pytest
import torch
from scipy import special, stats
from tests import oracles

from wiseale.likelihoods import Bernoulli, Gaussian, Likelihood
from wiseale.objectives import Batch, make_objective
from wiseale.posterior import Posterior


class Unknown(Likelihood):
    """A likelihood that knows no shorter way to its average than all pairs."""

    mean = cell_log_prob = surprise = sample = None

    def __init__(self, inner):
        self.mean, self.log_prob = inner.mean, inner.log_prob


def gaussian(output):
    return Gaussian(output, 0.3)


def observations(kind, m=6, shape=(2, 4), seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(2.0, 1.5, (m, *shape)) if kind is gaussian else rng.integers(0, 2, (m, *shape)).astype(float)
    return x, rng.normal(size=(m, *shape))


def pairs_by_scipy(kind, x, output):
    """log p(x_j|z_i) for every i and j by scipy."""
    log_prob = np.empty((len(output), len(x)))
    for i, row in enumerate(output):
        for j, observation in enumerate(x):
            if kind is gaussian:
                log_prob[i, j] = stats.norm.logpdf(observation, row, 0.3).sum()
            else:
                log_prob[i, j] = stats.bernoulli.logpmf(observation, special.expit(row)).sum()
    return log_prob


@pytest.mark.parametrize("kind", [gaussian, Bernoulli])
def test_the_average_over_all_pairs_is_in_true_nats(kind):
    x, output = observations(kind)
    expected = pairs_by_scipy(kind, x, output).mean(1)
    likelihood = kind(torch.tensor(output))
    for each in (likelihood, Unknown(likelihood)):
        np.testing.assert_allclose(each.average_log_prob(torch.tensor(x)).numpy(), expected, rtol=1e-11)


@pytest.mark.parametrize("kind", [gaussian, Bernoulli])
def test_fast_and_general_way_have_one_gradient(kind):
    x, output = observations(kind)
    gradients = []
    for wrap in (lambda likelihood: likelihood, Unknown):
        leaf = torch.tensor(output, requires_grad=True)
        weights = torch.linspace(-1, 2, len(x), dtype=torch.float64)
        (weights * wrap(kind(leaf)).average_log_prob(torch.tensor(x))).sum().backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(*gradients, rtol=1e-10, atol=1e-10)


def codes(m, d=2, seed=1):
    g = torch.Generator().manual_seed(seed)
    mu, epsilon = (torch.randn(m, d, generator=g, dtype=torch.float64) for _ in range(2))
    q = Posterior(mu, torch.full_like(mu, 0.4))
    return q, q.sample(epsilon)


@pytest.mark.parametrize("kind", [gaussian, Bernoulli])
def test_both_reconstructions_against_scipy(kind):
    x, output = observations(kind)
    pairs = pairs_by_scipy(kind, x, output)
    arguments = (torch.tensor(x), *codes(len(x)), kind(torch.tensor(output)))
    shared = make_objective("wise_ale_exact")(Batch(*arguments))
    mixture = make_objective("wise_ale_exact:reconstruction=mixture")(Batch(*arguments))
    np.testing.assert_allclose(shared.reconstruction.numpy(), -pairs.mean(1), rtol=1e-11)
    expected = np.log(len(x)) - special.logsumexp(pairs, axis=1)
    np.testing.assert_allclose(mixture.reconstruction.numpy(), expected, rtol=1e-11)
    own = float(-np.diag(pairs).mean())
    assert float(mixture.details["own_reconstruction"]) == pytest.approx(own)
    # Jensen's inequality, and dropping all but a code's own term: the two steps of the paper's approximation.
    assert bool((mixture.reconstruction <= shared.reconstruction).all())
    assert float(mixture.reconstruction.mean()) <= own + np.log(len(x))


def test_the_elbo_reported_is_that_of_aevb():
    x, output = observations(gaussian)
    arguments = (torch.tensor(x), *codes(len(x)), gaussian(torch.tensor(output)))
    elbo = make_objective("wise_ale_exact")(Batch(*arguments)).elbo
    torch.testing.assert_close(elbo, -make_objective("aevb")(Batch(*arguments)).loss)


# z ~ N(0, 1), x_j|z ~ N(slope·z + offset, noise²), one z for the whole batch: B ~ N(offset·1, noise²·I + slope²·11ᵀ).
SLOPE, OFFSET, NOISE = 1.3, -0.4, 0.7


def log_evidence(x):
    covariance = NOISE**2 * np.eye(len(x)) + SLOPE**2
    return stats.multivariate_normal.logpdf(x, np.full(len(x), OFFSET), covariance)


def expected_loss(objective, x, mu, sigma):
    """E over z of the loss, by Gauss–Hermite quadrature: each term depends on one z_i alone, so nodes can be shared."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    q = Posterior(torch.tensor(mu)[:, None], torch.tensor(sigma)[:, None])
    total = 0.0
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        z = q.sample(torch.full_like(q.mu, node))
        total += weight * float(
            objective(Batch(torch.tensor(x)[:, None], q, z, Gaussian(SLOPE * z + OFFSET, NOISE))).loss
        )
    return total


@pytest.mark.parametrize("estimator", ["jensen", "bhattacharyya", "tightest", "mc"])
@pytest.mark.parametrize("m", [2, 5, 20])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_a_lower_bound_on_the_evidence_of_a_shared_code(estimator, m, seed):
    rng = np.random.default_rng(seed)
    x = OFFSET + SLOPE * rng.normal() + NOISE * rng.normal(size=m)
    centre = rng.normal()
    mu, sigma = centre + rng.uniform(0, 0.6) * rng.normal(size=m), rng.uniform(0.2, 1.2, m)
    bound = -m * expected_loss(make_objective("wise_ale_exact", estimator=estimator), x, mu, sigma)
    assert bound <= log_evidence(x)
    if estimator == "mc":  # the gap is then D_KL[q(z|B) ‖ p(z|B)] alone: check the value, not only the side
        exact = _expected_log_likelihood(x, mu, sigma) - oracles.aggregate_kl_by_quadrature(mu, sigma)
        assert bound == pytest.approx(exact, abs=1e-3)


def _expected_log_likelihood(x, mu, sigma):
    """E_{q(z|B)}[Σ_j log p(x_j|z)] in closed form."""
    squares = (x[None] - SLOPE * mu[:, None] - OFFSET) ** 2 + (SLOPE * sigma[:, None]) ** 2
    return (-0.5 * squares / NOISE**2 - np.log(NOISE) - 0.5 * np.log(2 * np.pi)).sum(1).mean()


@pytest.mark.parametrize("estimator", ["bhattacharyya", "tightest", "mc"])
def test_the_bound_is_reached_by_the_true_posterior(estimator):
    """Where every q(z|x_i) is p(z|B), which the encoder of one x cannot know in general."""
    rng = np.random.default_rng(0)
    x = OFFSET + SLOPE * rng.normal() + NOISE * rng.normal(size=9)
    precision = 1 + len(x) * SLOPE**2 / NOISE**2
    mean = SLOPE * (x - OFFSET).sum() / NOISE**2 / precision
    loss = expected_loss(
        make_objective("wise_ale_exact", estimator=estimator), x, np.full(9, mean), np.full(9, precision**-0.5)
    )
    assert -9 * loss == pytest.approx(log_evidence(x), abs=1e-9)


def test_far_observations_stay_finite_in_float32():
    x = torch.linspace(-1e3, 1e3, 8)[:, None].expand(8, 50)
    output = torch.zeros(8, 50, requires_grad=True)
    q, z = codes(8)
    q = Posterior(q.mu.float(), q.sigma.float())
    for reconstruction in ("shared", "mixture"):
        objective = make_objective("wise_ale_exact", reconstruction=reconstruction)
        loss = objective(Batch(x, q, z.float(), Gaussian(output, 0.05))).loss
        (gradient,) = torch.autograd.grad(loss, output)
        assert bool(loss.isfinite())
        assert bool(gradient.isfinite().all())


def test_no_intermediate_grows_with_all_pairs_times_features():
    """What the graph keeps of 40 × 40 pairs of 3,000 features is columns of the result, not the pairs' differences."""
    x, output = torch.randn(40, 3000), torch.randn(40, 3000, requires_grad=True)
    kept = []

    def pack(tensor):
        kept.append(tensor.untyped_storage().data_ptr() if tensor.numel() > 40 * 40 else 0)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        Gaussian(output, 1.0).pairwise_log_prob(x)
    assert len(set(kept) - {0}) <= 2  # x and the outputs themselves
