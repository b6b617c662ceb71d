"""WiSE-ALE over the batch, against the paper's formula written out; where a bank is refused."""

import numpy as np
import pytest
import torch
from scipy import special, stats

from wiseale.errors import ConfigError
from wiseale.likelihoods import Bernoulli
from wiseale.objectives import make_objective
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
    terms = objective(torch.tensor(x), q, q.sample(torch.tensor(epsilon)), Bernoulli(torch.tensor(logits)))
    assert float(terms.loss) == pytest.approx(-(log_likelihood - bound) / m, rel=1e-10)


def test_monte_carlo_is_taken_at_the_given_codes():
    x, mu, sigma, epsilon, logits = batch()
    z = mu + sigma * epsilon
    log_q = special.logsumexp(stats.norm.logpdf(z[:, None], mu, sigma).sum(-1), axis=1) - np.log(len(x))
    expected = (log_q - stats.norm.logpdf(z).sum(-1)).mean()
    q = Posterior(torch.tensor(mu), torch.tensor(sigma))
    terms = make_objective("wise_ale:estimator=mc")(
        torch.tensor(x), q, q.sample(torch.tensor(epsilon)), Bernoulli(torch.tensor(logits))
    )
    assert float(terms.prior) == pytest.approx(expected, rel=1e-10)


def test_a_bank_needs_a_weight_that_does_not_depend_on_the_batch():
    assert make_objective("wise_ale:aggregate=bank,prior_weight=1/N").effective_weight(64, 1000) == 1 / 1000
    with pytest.raises(ConfigError, match=r"prior_weight 'paper' has no meaning for a bank.*give a number"):
        make_objective("wise_ale", aggregate="bank", prior_weight="paper")


def test_a_bank_smaller_than_the_batch_is_refused_before_training():
    with pytest.raises(ConfigError, match="bank_size must be at least the batch size, got 32 for batches of 64"):
        make_objective("wise_ale:aggregate=bank,bank_size=32").at_scale(64, 1000)


def test_settings_without_a_memory_cannot_be_called():
    objective = make_objective("wise_ale:aggregate=bank")
    q = Posterior(torch.zeros(2, 1), torch.ones(2, 1))
    with pytest.raises(ConfigError, match="build"):
        objective(torch.zeros(2, 1), q, q.mu, Bernoulli(torch.zeros(2, 1)))
