"""WiSE-ALE against the paper's formula written out, and against the one page of the method."""

import numpy as np
import pytest
import torch
from scipy import special, stats

from wiseale.likelihoods import Bernoulli, Gaussian
from wiseale.method import kl_upper_bound, log_mean_overlap, wise_ale_loss
from wiseale.objectives import Batch, make_objective
from wiseale.posterior import Posterior


def batch(m=5, d=3, features=4, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.integers(0, 2, (m, features)).astype(float),
        rng.normal(size=(m, d)),
        rng.uniform(0.2, 1.5, (m, d)),
        rng.normal(size=(m, d)),
        rng.normal(size=(m, features)),
    )


def test_the_papers_objective_written_out():
    """L(B_M) = Σ_i log p(x_i|z_i) − KL^UB of eq:KL-UB, as a plain double sum; the loss is −L/M."""
    x, mu, sigma, epsilon, logits = batch()
    m = len(x)
    p = special.expit(logits)
    log_likelihood = stats.bernoulli.logpmf(x, p).sum()
    first = 0.0
    for i in range(m):
        inside = 0.0
        for j in range(m):
            a = 2 * np.pi * (sigma[i] ** 2 + sigma[j] ** 2)
            b = np.exp(-0.5 * (mu[i] - mu[j]) ** 2 / (sigma[i] ** 2 + sigma[j] ** 2))
            inside += np.prod(a**-0.5 * b)
        first += np.log(inside / m) / m
    bound = first + (sigma**2 + mu**2 + np.log(2 * np.pi)).sum() / (2 * m)
    q = Posterior(torch.tensor(mu), torch.tensor(sigma))
    objective = make_objective("wise_ale:prior_weight=paper")
    terms = objective(Batch(torch.tensor(x), q, q.sample(torch.tensor(epsilon)), Bernoulli(torch.tensor(logits))))
    assert float(terms.loss) == pytest.approx(-(log_likelihood - bound) / m, rel=1e-10)


def test_monte_carlo_is_taken_at_the_given_codes():
    x, mu, sigma, epsilon, logits = batch()
    z = mu + sigma * epsilon
    log_q = special.logsumexp(stats.norm.logpdf(z[:, None], mu, sigma).sum(-1), axis=1) - np.log(len(x))
    expected = (log_q - stats.norm.logpdf(z).sum(-1)).mean()
    q = Posterior(torch.tensor(mu), torch.tensor(sigma))
    terms = make_objective("wise_ale:estimator=mc")(
        Batch(torch.tensor(x), q, q.sample(torch.tensor(epsilon)), Bernoulli(torch.tensor(logits)))
    )
    assert float(terms.prior) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("m", [7, 64])
def test_the_loss_is_the_one_page(m):
    """The formulas of wiseale.method, whatever path the objective takes: 64 posteriors in float32 are summed in C."""
    g = torch.Generator().manual_seed(m)
    x, x_hat, mu, raw, epsilon = torch.randn(5, m, 3, generator=g)
    q = Posterior(mu, raw.exp())
    likelihood = Gaussian(x_hat, 1.0)
    ours = make_objective("wise_ale:prior_weight=0.7")(Batch(x, q, q.sample(epsilon), likelihood)).loss
    exact = Posterior(mu.double(), raw.exp().double())
    bound = kl_upper_bound(exact, log_mean_overlap(exact))
    theirs = wise_ale_loss(likelihood.log_prob(x).double(), bound, 0.7)
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)
