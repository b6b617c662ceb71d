"""KL = mutual information + total correlation + dimension-wise KL, and each part where its value is known."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from wiseale.divergences import kl_posterior_prior
from wiseale.likelihoods import Gaussian
from wiseale.objectives import Batch, make_objective
from wiseale.posterior import Posterior


def parts(mu, sigma, n=1, seed=0, beta=6.0):
    """The three details averaged over n draws of z, and the standard errors."""
    posterior, x = Posterior(mu, sigma), torch.zeros(len(mu), 1, dtype=mu.dtype)
    g = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(n):
        z = posterior.sample(torch.randn(mu.shape, generator=g, dtype=mu.dtype))
        terms = make_objective("beta_tc_vae", beta=beta)(Batch(x, posterior, z, Gaussian(x, 1.0)))
        at_z = posterior.log_prob(z) - torch.distributions.Normal(0, 1).log_prob(z).sum(1)
        torch.testing.assert_close(sum(terms.details.values()), at_z.mean())
        extra = (beta - 1) * terms.details["total_correlation"]
        torch.testing.assert_close(terms.prior, kl_posterior_prior(posterior).mean() + extra)
        found.append([float(value) for value in terms.details.values()])
    assert list(terms.details) == ["mutual_information", "total_correlation", "dimension_wise_kl"]
    found = np.array(found)
    return found.mean(0), found.std(0) / math.sqrt(n)


def test_collapsed_posteriors_have_none_of_the_three():
    """q(z|x) = p for every x: nothing is said about x, dimensions are independent, the aggregate is the prior."""
    mean, _ = parts(torch.zeros(5, 3, dtype=torch.float64), torch.ones(5, 3, dtype=torch.float64))
    assert mean[:2] == pytest.approx([0, 0], abs=1e-12)
    assert mean[2] == pytest.approx(0, abs=1e-12)


def test_separated_posteriors_on_a_diagonal():
    """Every dimension alone already tells which x it was: MI = log M, TC = (d − 1)·log M, the rest is the remainder."""
    m, d = 7, 4
    mu = 100 * torch.arange(m, dtype=torch.float64)[:, None].expand(m, d).contiguous()
    sigma = torch.full((m, d), 0.3, dtype=torch.float64)
    mean, error = parts(mu, sigma, n=200)
    assert mean[:2] == pytest.approx([math.log(m), (d - 1) * math.log(m)], abs=1e-9)
    rest = float(kl_posterior_prior(Posterior(mu, sigma)).mean()) - d * math.log(m)
    assert mean[2] == pytest.approx(rest, abs=4 * error[2])


def test_separated_posteriors_on_a_grid_are_independent():
    """A full k × k grid: the joint is the product of its marginals, so TC = 0 while MI = log k²."""
    line = 50 * torch.arange(3, dtype=torch.float64)
    mean, _ = parts(torch.cartesian_prod(line, line), torch.full((9, 2), 0.5, dtype=torch.float64))
    assert mean[:2] == pytest.approx([math.log(9), 0], abs=1e-9)


def test_parts_of_a_mixture_against_quadrature():
    mu, sigma = np.array([[-0.8, -0.5], [0.9, 0.7], [0.3, -0.4]]), np.array([[0.5, 0.6], [0.4, 0.7], [0.8, 0.5]])
    grid = np.linspace(-7, 7, 701)
    of_each = stats.norm.pdf(grid[:, None, None], mu, sigma)  # (grid, component, dimension)
    joint, marginals = np.einsum("aj,bj->ab", of_each[..., 0], of_each[..., 1]) / 3, of_each.mean(1)

    def expectation(values):
        return (joint * values).sum() * (grid[1] - grid[0]) ** 2

    log_product = np.log(marginals[:, None, 0]) + np.log(marginals[None, :, 1])
    log_prior = stats.norm.logpdf(grid)[:, None] + stats.norm.logpdf(grid)
    log_conditional = -stats.norm.entropy(0, sigma).sum(1).mean()
    exact = [
        log_conditional - expectation(np.log(joint)),
        expectation(np.log(joint) - log_product),
        expectation(log_product - log_prior),
    ]
    assert sum(exact) == pytest.approx(float(kl_posterior_prior(Posterior(*map(torch.tensor, (mu, sigma)))).mean()))
    mean, error = parts(torch.tensor(mu), torch.tensor(sigma), n=1500)
    assert np.all(np.abs(mean - exact) < 4 * error)


def test_total_correlation_of_correlated_codes_is_that_of_a_gaussian():
    """Means from N(0, Σ − s²I), widths s: the aggregate is N(0, Σ), whose TC is −½ log(1 − ρ²)."""
    rho, s = 0.8, 0.4
    cholesky = torch.linalg.cholesky(torch.tensor([[1 - s**2, rho], [rho, 1 - s**2]], dtype=torch.float64))
    quantiles = torch.tensor(stats.norm.ppf((np.arange(40) + 0.5) / 40))
    mu = torch.cartesian_prod(quantiles, quantiles) @ cholesky.T
    mean, error = parts(mu, torch.full_like(mu, s), n=6)
    assert mean[1] == pytest.approx(-0.5 * math.log(1 - rho**2), abs=0.03)
    assert mean[2] == pytest.approx(0, abs=0.03)
    assert np.all(error < 0.01)


def test_minibatch_weighted_sampling_differs_by_a_constant_and_not_in_gradient():
    """Eq. S3 of the paper has log (1/NM) Σ_j where the batch's aggregate has log (1/M) Σ_j: TC gains (d − 1)·log N."""
    n_samples, m, d = 1000, 6, 3
    g = torch.Generator().manual_seed(0)
    mu, raw, epsilon = (torch.randn(m, d, generator=g, dtype=torch.float64) for _ in range(3))
    mu, sigma, x = mu.requires_grad_(), (0.3 * raw).exp().requires_grad_(), torch.zeros(m, 1, dtype=torch.float64)
    posterior = Posterior(mu, sigma)
    z = posterior.sample(epsilon)
    log_q = torch.distributions.Normal(mu, sigma).log_prob(z[:, None])  # (i, j, k)
    scale = math.log(n_samples * m)
    joint, marginals = log_q.sum(-1).logsumexp(1) - scale, log_q.logsumexp(1) - scale
    theirs = (joint - marginals.sum(-1)).mean()
    ours = make_objective("beta_tc_vae")(Batch(x, posterior, z, Gaussian(x, 1.0))).details["total_correlation"]
    torch.testing.assert_close(theirs - ours, torch.tensor((d - 1) * math.log(n_samples), dtype=torch.float64))
    gradients = [torch.autograd.grad(value, (mu, sigma), retain_graph=True) for value in (theirs, ours)]
    torch.testing.assert_close(*gradients)


def test_beta_one_is_aevb():
    x, mu = torch.randn(2, 8, 3, generator=torch.Generator().manual_seed(0))
    posterior = Posterior(mu, torch.full_like(mu, 0.5))
    losses = [
        make_objective(spec)(Batch(x, posterior, mu, Gaussian(mu, 1.0))).loss for spec in ("beta_tc_vae:beta=1", "aevb")
    ]
    assert torch.equal(*losses)
