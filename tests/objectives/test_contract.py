"""What every registered objective promises; enumerates the registry."""

import pytest
import torch

from wiseale.errors import ConfigError
from wiseale.likelihoods import Gaussian
from wiseale.networks.model import seeded
from wiseale.objectives import Terms, make_objective, objective_names
from wiseale.posterior import Posterior

SPECS = [
    *objective_names(),
    "wise_ale:estimator=bhattacharyya",
    "wise_ale:estimator=tightest",
    "wise_ale:estimator=mc",
    "wise_ale:prior_weight=paper",
    "beta_vae:beta=1/M",
    "wise_ale:aggregate=bank,bank_size=100",
    "wise_ale:aggregate=bank,estimator=bhattacharyya",
    "wise_ale:aggregate=bank,estimator=tightest",
    "wise_ale:aggregate=bank,estimator=mc",
    "wise_ale_exact:estimator=mc,prior_weight=0.3",
    "wise_ale_exact:reconstruction=mixture",
    "gmvae:clusters=1,w_dim=1,minimum_z_prior=0.5",
]
DRAWS_BY_ROW = {"gmvae"}  # draws noise for each row, so the noise would have to be shuffled too: see its own test
PATH_ONLY = {"wise_ale:aggregate=bank,estimator=mc"}  # its gradient is right in expectation alone: see its own test


def batch(m=6, d=2, features=5, seed=0, dtype=torch.float64):
    g = torch.Generator().manual_seed(seed)
    x, x_hat = (torch.randn(m, features, generator=g, dtype=dtype) for _ in range(2))
    mu, raw, epsilon = (torch.randn(m, d, generator=g, dtype=dtype) for _ in range(3))
    posterior = Posterior(mu.requires_grad_(), (0.3 * raw).exp().requires_grad_())
    return x, posterior, posterior.sample(epsilon), Gaussian(x_hat.requires_grad_(), 0.7)


def terms_of(objective, *arguments, seed=0):
    """Terms from an objective or its spec, freshly built with the same weights each time."""
    x, posterior, _, _ = arguments
    made = make_objective(objective) if isinstance(objective, str) else objective
    with seeded(0):
        called = made.build(x.shape[1:], posterior.latent_dim)
    if isinstance(called, torch.nn.Module):
        called.to(x.dtype)
    return called(*arguments, generator=torch.Generator().manual_seed(seed))


def without(left_out):
    return [spec for spec in SPECS if spec not in left_out and spec.split(":")[0] not in left_out]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("m", [2, 6, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_terms_are_finite_and_shaped(spec, m, dtype):
    terms = terms_of(spec, *batch(m, dtype=dtype))
    assert isinstance(terms, Terms)
    assert terms.reconstruction.shape == (m,)
    assert terms.prior.shape == terms.loss.shape == ()
    assert terms.reconstruction.dtype == terms.prior.dtype == dtype
    assert bool(terms.loss.isfinite())
    assert isinstance(terms.weight, float)


@pytest.mark.parametrize("spec", SPECS)
def test_loss_is_mean_reconstruction_plus_weighted_prior(spec):
    terms = terms_of(spec, *batch())
    torch.testing.assert_close(terms.loss, terms.reconstruction.mean() + terms.weight * terms.prior)
    torch.testing.assert_close(terms.loss_at(0.0), terms.reconstruction.mean())


@pytest.mark.parametrize("spec", without(DRAWS_BY_ROW))
def test_order_of_the_batch_does_not_matter(spec):
    x, posterior, z, likelihood = batch()
    order = torch.tensor([4, 0, 5, 2, 1, 3])
    shuffled = terms_of(spec, x[order], posterior[order], z[order], Gaussian(likelihood.mean[order], 0.7))
    terms = terms_of(spec, x, posterior, z, likelihood)
    torch.testing.assert_close(shuffled.loss, terms.loss)
    torch.testing.assert_close(shuffled.reconstruction, terms.reconstruction[order])


@pytest.mark.parametrize("spec", SPECS)
def test_gradients_reach_encoder_and_decoder(spec):
    x, posterior, z, likelihood = batch()
    found = torch.autograd.grad(terms_of(spec, x, posterior, z, likelihood).loss, (posterior.mu, likelihood.mean))
    assert all(float(gradient.abs().sum()) > 0 for gradient in found)


@pytest.mark.parametrize("spec", without(PATH_ONLY))
def test_gradcheck(spec):
    x, posterior, _, likelihood = batch(3)
    epsilon = torch.randn(3, 2, generator=torch.Generator().manual_seed(9), dtype=torch.float64)

    def loss(mu, sigma, mean):
        q = Posterior(mu, sigma)
        return terms_of(spec, x, q, q.sample(epsilon), Gaussian(mean, 0.7)).loss

    inputs = (posterior.mu, posterior.sigma, likelihood.mean)
    assert torch.autograd.gradcheck(loss, [value.detach().requires_grad_() for value in inputs])


@pytest.mark.parametrize("spec", without({"wise_ale_exact"}))
def test_reconstruction_is_the_negative_log_likelihood(spec):
    x, posterior, z, likelihood = batch()
    expected = -torch.distributions.Normal(likelihood.mean, 0.7).log_prob(x).sum(1)
    torch.testing.assert_close(terms_of(spec, x, posterior, z, likelihood).reconstruction, expected)


@pytest.mark.parametrize("spec", SPECS)
def test_the_effective_weight_is_the_one_used(spec):
    terms = terms_of(spec, *batch(6))
    objective = make_objective(spec)
    assert objective.effective_weight(6, 1000) == pytest.approx(terms.weight)
    fixed = objective.at_scale(6, 1000)
    larger = terms_of(spec, *batch(12))
    assert terms_of(fixed, *batch(12)).weight == pytest.approx(terms.weight)
    by_name = objective.weight_setting and isinstance(getattr(objective, objective.weight_setting), str)
    assert (larger.weight != terms.weight) == bool(by_name)


def test_weights_by_name():
    assert make_objective("wise_ale", prior_weight="paper").effective_weight(64, 1000) == 1 / 64
    assert make_objective("wise_ale", prior_weight="1/M").effective_weight(64, 1000) == 1 / 64
    assert make_objective("wise_ale:prior_weight=1/N").effective_weight(64, 1000) == 1 / 1000
    assert make_objective("wise_ale:prior_weight=1/16").effective_weight(64, 1000) == 1 / 16
    assert make_objective("wise_ale").effective_weight(64, 1000) == 1
    assert make_objective("beta_vae").effective_weight(64, 1000) == 4


def test_one_over_n_needs_n():
    with pytest.raises(ConfigError, match="number of training samples"):
        make_objective("wise_ale:prior_weight=1/N")(*batch())


def test_aevb_is_beta_vae_with_beta_one():
    torch.testing.assert_close(terms_of("aevb", *batch()).loss, terms_of("beta_vae:beta=1", *batch()).loss)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("wise_al", "did you mean 'wise_ale'"),
        ("wise_ale:prior_wieght=1", "did you mean 'prior_weight'"),
        ("wise_ale:estimator=exact", "must be 'jensen' or 'bhattacharyya' or 'tightest' or 'mc', got 'exact'"),
        ("wise_ale:prior_weight=-1", "must be above 0, got -1"),
        ("wise_ale:prior_weight=inf", "must be finite"),
        ("beta_vae:beta=0", "must be above 0"),
        ("wise_ale:jensen", "name:key=value"),
        ("wise_ale:aggregate=bank,prior_weight=paper", "give a number"),
        ("wise_ale:aggregate=bank,prior_weight=1/M", "give a number"),
        ("wise_ale:bank_size=1", "must be at least 2"),
        ("gmvae:clusters=0", "must be at least 1"),
    ],
)
def test_a_wrong_spec_is_refused_in_words(spec, message):
    with pytest.raises(ConfigError, match=message):
        make_objective(spec)
