import numpy as np
import pytest
import torch
from scipy import stats

from wiseale.errors import ConfigError
from wiseale.likelihoods import Bernoulli, BernoulliSettings, Gaussian, GaussianSettings
from wiseale.spaces import plain_space


def test_gaussian_log_prob_is_scipys():
    rng = np.random.default_rng(0)
    x, mean = rng.normal(size=(2, 4, 3, 5))
    expected = stats.norm.logpdf(x, mean, 0.3).reshape(4, -1).sum(1)
    found = Gaussian(torch.from_numpy(mean), 0.3).log_prob(torch.from_numpy(x))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_gaussian_log_prob_with_noise_of_each_entry_is_scipys():
    rng = np.random.default_rng(1)
    x, mean = rng.normal(size=(2, 4, 3, 5))
    widths = rng.uniform(0.1, 2, size=(3, 5))
    expected = stats.norm.logpdf(x, mean, widths).reshape(4, -1).sum(1)
    found = Gaussian(torch.from_numpy(mean), torch.from_numpy(widths))
    np.testing.assert_allclose(found.log_prob(torch.from_numpy(x)).numpy(), expected, rtol=1e-12)
    pairs = stats.norm.logpdf(x[None], mean[:, None], widths).reshape(4, 4, -1).sum(2).mean(1)
    np.testing.assert_allclose(found.average_log_prob(torch.from_numpy(x)).numpy(), pairs, rtol=1e-12)


@pytest.mark.parametrize("x_sigma", [0.0, -1.0, 1e-300, 1e300])
def test_noise_whose_square_is_no_number_is_refused(x_sigma):
    with pytest.raises(ConfigError, match="x_sigma"):
        GaussianSettings(x_sigma=x_sigma)


@pytest.mark.parametrize(("x_sigma", "shape"), [("learned", ()), ("columns", (3,))])
def test_learned_noise_finds_the_residuals_standard_deviation(x_sigma, shape):
    """The likelihood of residuals r is greatest at x_sigma² = mean r², over all entries or over each column."""
    residuals = torch.randn(500, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([0.1, 0.5, 2.0])
    family = GaussianSettings(x_sigma=x_sigma).build(plain_space((3,)))
    assert family.log_x_sigma.shape == shape
    optimizer = torch.optim.LBFGS(family.parameters(), max_iter=100, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        value = -family(torch.zeros(500, 3)).log_prob(residuals).mean()
        value.backward()
        return value

    optimizer.step(loss)
    expected = residuals.square().mean(0 if shape else None).sqrt()
    torch.testing.assert_close(family.x_sigma.detach(), expected, rtol=1e-3, atol=1e-4)


def test_learned_noise_stays_above_its_floor():
    family = GaussianSettings(x_sigma="learned", x_sigma_min=0.01).build(plain_space((3,)))
    assert family.start_noise(0.0) >= 0.01**2
    torch.nn.init.constant_(family.log_x_sigma, -1e3)
    assert float(family.x_sigma.detach()) == pytest.approx(0.01)
    assert family.start_noise(0.25) == pytest.approx(0.25)


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


@pytest.mark.parametrize("settings", [GaussianSettings(x_sigma=0.5), BernoulliSettings()])
def test_samples_have_the_likelihoods_mean(settings):
    output = torch.tensor([[-1.0, 0.0, 2.0]]).expand(20_000, 3)
    likelihood = settings.build(plain_space((3,)))(output)
    draws = likelihood.sample(torch.Generator().manual_seed(0))
    error = draws.std(0) / len(draws) ** 0.5
    assert torch.all((draws.mean(0) - likelihood.mean[0]).abs() < 4.5 * error)
    assert torch.equal(draws, likelihood.sample(torch.Generator().manual_seed(0)))
