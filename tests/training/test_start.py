"""The start at probabilistic PCA, against scikit-learn and the exact likelihood of the linear model."""

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from wiseale import AutoEncoder, config
from wiseale.data.dataset import Rows
from wiseale.divergences import kl_posterior_prior
from wiseale.likelihoods import BernoulliSettings
from wiseale.networks.model import Model, seeded
from wiseale.spaces import plain_space
from wiseale.training.batches import Batches
from wiseale.training.setup import principal_components, start_at_pca

RNG = np.random.default_rng(5)
LOADINGS = RNG.normal(size=(3, 12)) * [[2.0], [1.0], [0.5]]
X = RNG.normal(size=(400, 3)) @ LOADINGS + 0.3 * RNG.normal(size=(400, 12)) + RNG.normal(size=12)

TABLES = {
    "more rows than columns": X,
    "more columns than rows": X[:8],
    "two rows": X[:2],
    "constant column": np.where(np.arange(12) == 4, 7.0, X),
    "duplicated columns": np.concatenate([X, X[:, :6]], 1),
    "rank 3": RNG.normal(size=(50, 3)) @ LOADINGS,
    "all equal": np.ones((9, 4)),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("count", [1, 3, 8])
def test_components_are_scikit_learns(name, count):
    x = TABLES[name]
    found = principal_components(torch.from_numpy(x), count)
    kept = min(count, *x.shape)
    with np.errstate(invalid="ignore"):  # its share of explained variance is 0/0 where all rows are equal
        pca = PCA(kept, svd_solver="full").fit(x)
    expected = np.pad(pca.explained_variance_ * (1 - 1 / len(x)), (0, count - kept))
    np.testing.assert_allclose(found.variances.numpy(), expected, atol=1e-9)
    directions = found.directions.numpy()
    projected = (x - x.mean(0)) @ directions @ directions.T + x.mean(0)
    np.testing.assert_allclose(projected, pca.inverse_transform(pca.transform(x)), atol=1e-7)
    left = np.square(x - projected).sum() / len(x)
    assert found.residual * max(x.shape[1] - kept, 1) == pytest.approx(left, abs=1e-9)


def started(x, *, likelihood="gaussian:x_sigma=learned", network="mlp:hidden=16", latent_dim=3, stochastic=True):
    with seeded(0):
        family = config.build("likelihood", likelihood)
        model = Model(config.build("network", network), plain_space(x.shape[1:]), latent_dim, family, stochastic)
    start_at_pca(model, Batches(Rows(x)), seed=0)
    return model.double().eval()


def elbo(model, x):
    """Exact for a linear decoder and a Gaussian likelihood: a mean over z = mu ± √d·sigma_k·e_k integrates squares."""
    posterior = model.encode(x)
    steps = torch.eye(model.latent_dim).double() * model.latent_dim**0.5
    log_p = [model.decode(posterior.sample(step.expand(len(x), -1))).log_prob(x) for step in (*steps, *-steps)]
    return torch.stack(log_p).mean(0) - kl_posterior_prior(posterior)


@torch.no_grad()
@pytest.mark.parametrize("likelihood", ["gaussian:x_sigma=learned", "gaussian:x_sigma=0.4"])
def test_the_bound_is_tight_at_the_start(likelihood):
    """ELBO = log N(x; m, BBᵀ + σ²I): the posterior is the linear model's own."""
    model, rows = started(X, likelihood=likelihood), torch.from_numpy(X[:20])
    weight, bias = model.linear.decoder.weight.numpy(), model.linear.decoder.bias.numpy()
    noise = float(model.decode(torch.zeros(1, 3).double()).x_sigma)
    exact = stats.multivariate_normal(bias, weight @ weight.T + noise**2 * np.eye(12)).logpdf(X[:20])
    np.testing.assert_allclose(elbo(model, rows).numpy(), exact, atol=1e-4)


@torch.no_grad()
def test_the_start_has_the_likelihood_of_probabilistic_pca():
    """scikit-learn's covariance divides by n − 1, ours by n, which is the maximum."""
    found = float(elbo(started(X), torch.from_numpy(X)).mean())
    theirs = PCA(3).fit(X).score(X)
    assert theirs < found + 1e-6 < theirs + 1e-3


def test_the_start_is_an_optimum_of_the_linear_maps():
    """The gradient of the mean ELBO at the start vanishes for A, a, B, b, sigma and x_sigma, and not elsewhere."""
    model, rows = started(X), torch.from_numpy(X)

    def gradients():
        model.zero_grad()
        (-elbo(model, rows).mean()).backward()
        parts = [*model.linear.parameters(), model.head.sigma.bias, model.likelihood.log_x_sigma]
        return max(float(part.grad.abs().max()) for part in parts)

    at_start = gradients()
    with torch.no_grad():
        model.linear.decoder.weight.mul_(1.05)
    assert at_start < 1e-3 < 0.2 < gradients()


@torch.no_grad()
@pytest.mark.parametrize("shape", [(12,), (2, 6), (3, 2, 2)])
def test_a_deterministic_encoder_starts_at_whitened_pca(shape):
    x = X.reshape(-1, *shape)
    network = {1: "mlp:hidden=8", 2: "conv1d:channels=4,kernel=3,hidden=8", 3: "conv2d:channels=4,kernel=2,hidden=8"}
    model = started(x, network=network[len(shape)], stochastic=False)
    rows = torch.from_numpy(x)
    codes = model.encode(rows).mu
    torch.testing.assert_close(codes.T @ codes / len(x), torch.eye(3).double(), atol=1e-5, rtol=0)
    pca = PCA(3).fit(X)
    expected = pca.inverse_transform(pca.transform(X)).reshape(x.shape)
    np.testing.assert_allclose(model.decode(codes).mean.numpy(), expected, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("stochastic", [True, False])
def test_awkward_tables_start_finite_and_no_worse_than_their_mean(name, stochastic):
    x = TABLES[name]
    model, rows = started(x, latent_dim=8, stochastic=stochastic), torch.from_numpy(x)
    posterior = model.encode(rows)
    assert bool(posterior.mu.isfinite().all())
    x_hat = model.decode(posterior.mu).mean
    assert float((x_hat - rows).square().mean()) <= float((rows - rows.mean(0)).square().mean()) + 1e-9
    assert float(model.likelihood.x_sigma.min()) >= 1e-3


@torch.no_grad()
def test_binary_rows_start_better_than_their_frequencies():
    """A part of the way from the columns' frequencies to a logistic regression of each column on all others."""
    z = RNG.normal(size=(600, 2))
    x = (RNG.random((600, 10)) < 1 / (1 + np.exp(-3 * z @ RNG.normal(size=(2, 10))))).astype(float)
    model, rows = started(x, likelihood="bernoulli", latent_dim=2), torch.from_numpy(x)
    found = float(model.decode(model.encode(rows).mu).log_prob(rows).mean())
    p = x.mean(0)
    frequencies = float((x * np.log(p) + (1 - x) * np.log(1 - p)).sum(1).mean())
    reference = 0.0
    for column in range(10):
        others = np.delete(x, column, 1)
        fitted = LogisticRegression().fit(others, x[:, column]).predict_log_proba(others)
        reference += fitted[np.arange(600), x[:, column].astype(int)].mean()
    assert found > frequencies + 0.1 * (reference - frequencies)


def test_the_result_is_never_worse_than_the_start():
    """With a learning rate that ruins the network, early stopping returns to step 0: probabilistic PCA."""
    x = (X - X.mean(0)) / X.std(0)
    est = AutoEncoder(latent_dim=3, lr=0.3, patience=3, random_state=0).fit(x)
    assert est.best_epoch_ == 0
    pca = PCA(3).fit(x)
    error = np.square(pca.inverse_transform(pca.transform(x)) - x).sum()
    assert np.square(est.inverse_transform(est.transform(x)) - x).sum() < 1.1 * error


def test_few_rows_are_sampled_from_many_reproducibly(monkeypatch):
    monkeypatch.setattr("wiseale.training.setup._MOST_ROWS", 50)
    first, again = started(X).state_dict(), started(X).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    monkeypatch.undo()
    assert not torch.equal(first["linear.encoder.weight"], started(X).state_dict()["linear.encoder.weight"])


@torch.no_grad()
def test_binary_links_start_at_the_scale_that_suits_the_rows():
    """Loadings too long by far, of a column that half of the rows have and of one that few have."""
    draws = torch.Generator().manual_seed(0)
    z = torch.randn(400, 1, dtype=torch.double, generator=draws)
    x = torch.bernoulli(torch.sigmoid(torch.cat([0.7 * z, 0.7 * z - 5], 1)), generator=draws)
    mean = torch.tensor([x[:, 0].mean(), 0.0], dtype=torch.double)
    output = BernoulliSettings().build(plain_space((2,)))
    weights, bias = output.start_decoder(mean, torch.ones(2, 1).double(), x, z)
    likeliest, frequencies = (float(output(z @ part.T + bias).log_prob(x).mean()) for part in (weights, 0 * weights))
    assert likeliest > frequencies
    assert float(weights[1] / weights[0]) == pytest.approx(0.25 / 0.05, rel=0.01)  # p(1 − p) counts as 0.05 at least
    assert 0.005 < float(bias[1].sigmoid()) < 0.02  # never seen, and not impossible
