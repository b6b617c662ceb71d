import numpy as np
import pytest
import torch
from scipy import stats

from wiseale.likelihoods import Bernoulli, BernoulliFamily, Gaussian, GaussianFamily


def test_gaussian_log_prob_is_scipys():
    rng = np.random.default_rng(0)
    x, mean = rng.normal(size=(2, 4, 3, 5))
    expected = stats.norm.logpdf(x, mean, 0.3).reshape(4, -1).sum(1)
    found = Gaussian(torch.from_numpy(mean), 0.3).log_prob(torch.from_numpy(x))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_bernoulli_log_prob_is_scipys():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, size=(4, 2, 3))
    x = rng.integers(0, 2, size=p.shape)
    found = Bernoulli(torch.from_numpy(np.log(p / (1 - p)))).log_prob(torch.from_numpy(x.astype(float)))
    np.testing.assert_allclose(found.numpy(), stats.bernoulli.logpmf(x, p).reshape(4, -1).sum(1), rtol=1e-10)


def test_bernoulli_stays_finite_for_sure_predictions():
    logits = torch.tensor([[200.0, -200.0]], requires_grad=True)
    wrong = Bernoulli(logits).log_prob(torch.tensor([[0.0, 1.0]]))
    wrong.sum().backward()
    assert wrong.item() == -400
    assert bool(logits.grad.isfinite().all())


@pytest.mark.parametrize("family", [GaussianFamily(x_sigma=0.5), BernoulliFamily()])
def test_samples_have_the_likelihoods_mean(family):
    output = torch.tensor([[-1.0, 0.0, 2.0]]).expand(20_000, 3)
    likelihood = family(output)
    draws = likelihood.sample(torch.Generator().manual_seed(0))
    error = draws.std(0) / len(draws) ** 0.5
    assert torch.all((draws.mean(0) - likelihood.mean[0]).abs() < 4.5 * error)
    assert torch.equal(draws, likelihood.sample(torch.Generator().manual_seed(0)))
