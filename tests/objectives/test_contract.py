"""What every registered objective promises; enumerates the registry."""

import dataclasses

import pytest
import torch
from tests.objectives.specs import SPECS
from torch import nn

from wiseale.errors import ConfigError
from wiseale.likelihoods import Gaussian
from wiseale.networks.model import seeded
from wiseale.objectives import Batch, Terms, make_objective
from wiseale.objectives.terms import Adversarial
from wiseale.posterior import Posterior
from wiseale.spaces import plain_space

DRAWS_BY_ROW = {"gmvae"}  # draws noise for each row, so the noise would have to be shuffled too: see its own test


def batch(spec, m=6, d=2, features=5, seed=0, dtype=torch.float64):
    """What the loop would hand this objective: a deterministic encoder has codes and no width."""
    g = torch.Generator().manual_seed(seed)
    x, x_hat = (torch.randn(m, features, generator=g, dtype=dtype) for _ in range(2))
    mu, raw, epsilon = (torch.randn(m, d, generator=g, dtype=dtype) for _ in range(3))
    posterior = posterior_of(spec, mu.requires_grad_(), (0.3 * raw).exp().requires_grad_())
    return x, posterior, posterior.sample(epsilon), Gaussian(x_hat.requires_grad_(), 0.7)


def seeded_batch(spec, m=6, seed=0):
    return Batch(*batch(spec, m), generator=torch.Generator().manual_seed(seed))


def posterior_of(spec, mu, sigma):
    return Posterior(mu, sigma if make_objective(spec).stochastic else None)


def built(objective, latent_dim=2, dtype=torch.float64, seed=0):
    with seeded(seed):
        called = objective.build(plain_space((5,)), latent_dim)
    return called.to(dtype) if isinstance(called, nn.Module) else called


def terms_of(spec, x, posterior, z, likelihood, seed=0):
    called = built(make_objective(spec), posterior.latent_dim, x.dtype)
    return called(Batch(x, posterior, z, likelihood, generator=torch.Generator().manual_seed(seed)))


def without(left_out):
    return [spec for spec in SPECS if spec not in left_out and spec.split(":")[0] not in left_out]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("m", [2, 6, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_terms_are_finite_and_shaped(spec, m, dtype):
    terms = terms_of(spec, *batch(spec, m, dtype=dtype))
    assert isinstance(terms, Terms)
    assert terms.reconstruction.shape == (m,)
    assert terms.prior.shape == terms.loss.shape == ()
    assert terms.reconstruction.dtype == terms.prior.dtype == dtype
    assert bool(terms.loss.isfinite())
    assert isinstance(terms.weight, float)


@pytest.mark.parametrize("spec", SPECS)
def test_loss_is_mean_reconstruction_plus_weighted_prior(spec):
    terms = terms_of(spec, *batch(spec))
    torch.testing.assert_close(terms.loss, terms.reconstruction.mean() + terms.weight * terms.prior)
    torch.testing.assert_close(terms.loss_at(0.0), terms.reconstruction.mean())


@pytest.mark.parametrize("spec", without(DRAWS_BY_ROW))
def test_order_of_the_batch_does_not_matter(spec):
    x, posterior, z, likelihood = batch(spec)
    order = torch.tensor([4, 0, 5, 2, 1, 3])
    shuffled = terms_of(spec, x[order], posterior[order], z[order], Gaussian(likelihood.mean[order], 0.7))
    terms = terms_of(spec, x, posterior, z, likelihood)
    torch.testing.assert_close(shuffled.loss, terms.loss)
    torch.testing.assert_close(shuffled.reconstruction, terms.reconstruction[order])


@pytest.mark.parametrize("spec", SPECS)
def test_gradients_reach_encoder_and_decoder(spec):
    x, posterior, z, likelihood = batch(spec)
    leaves = (posterior.mu, likelihood.mean)
    terms = terms_of(spec, x, posterior, z, likelihood)
    to_mu, to_mean = torch.autograd.grad(terms.loss, leaves, allow_unused=True)
    assert float(to_mean.abs().sum()) > 0
    if terms.weight == 0:  # the loss is the reconstruction; the prior reaches the encoder in a step of its own
        assert to_mu is None
        called = built(make_objective(spec))
        (to_mu,) = torch.autograd.grad(called.encoder_loss(z, torch.Generator()), posterior.mu)
    assert float(to_mu.abs().sum()) > 0


@pytest.mark.parametrize("spec", SPECS)
def test_gradcheck(spec):
    x, posterior, _, likelihood = batch(spec, 3)
    epsilon = torch.randn(3, 2, generator=torch.Generator().manual_seed(9), dtype=torch.float64)

    def loss(mean, mu, sigma=None):
        q = posterior_of(spec, mu, sigma)
        return terms_of(spec, x, q, q.sample(epsilon), Gaussian(mean, 0.7)).loss

    width = [posterior.sigma] if make_objective(spec).stochastic else []
    inputs = [likelihood.mean, posterior.mu, *width]
    assert torch.autograd.gradcheck(loss, [value.detach().requires_grad_() for value in inputs])


@pytest.mark.parametrize("spec", without({"wise_ale_exact"}))
def test_reconstruction_is_the_negative_log_likelihood(spec):
    x, posterior, z, likelihood = batch(spec)
    expected = -torch.distributions.Normal(likelihood.mean, 0.7).log_prob(x).sum(1)
    torch.testing.assert_close(terms_of(spec, x, posterior, z, likelihood).reconstruction, expected)


@pytest.mark.parametrize("spec", SPECS)
def test_the_effective_weight_is_the_one_used(spec):
    terms = terms_of(spec, *batch(spec, 6))
    objective = make_objective(spec)
    assert objective.effective_weight(6, 1000) == pytest.approx(terms.weight)
    fixed = built(objective.at_scale(6, 1000))
    larger = terms_of(spec, *batch(spec, 12))
    assert fixed(seeded_batch(spec, 12)).weight == pytest.approx(terms.weight)
    by_name = objective.weight_setting and isinstance(getattr(objective, objective.weight_setting), str)
    assert (larger.weight != terms.weight) == bool(by_name)


@pytest.mark.parametrize("spec", SPECS)
def test_what_the_loop_calls_says_whether_it_couples_the_batch(spec):
    objective = make_objective(spec)
    assert built(objective).couples_batch is objective.couples_batch
    assert built(objective).needs_whole_batch is objective.needs_whole_batch


@pytest.mark.parametrize("spec", SPECS)
def test_state_round_trips(spec):
    """What a module objective computes follows from its state alone; the others have none."""
    first, second = (built(make_objective(spec), seed=seed) for seed in (1, 2))
    if isinstance(first, nn.Module):
        assert list(first.state_dict()) != []
        second.load_state_dict(first.state_dict())
    losses = [called(seeded_batch(spec)).loss for called in (first, second)]
    assert torch.equal(*losses)


@pytest.mark.parametrize("spec", SPECS)
def test_draws_come_from_the_generator_alone(spec):
    before = torch.get_rng_state()
    first, again = (terms_of(spec, *batch(spec), seed=5) for _ in range(2))
    assert torch.equal(first.loss, again.loss)
    assert torch.equal(before, torch.get_rng_state())


ADVERSARIAL = [spec for spec in SPECS if isinstance(built(make_objective(spec)), Adversarial)]


@pytest.mark.parametrize("spec", SPECS)
def test_a_system_with_a_critic_is_trained_as_one(spec):
    """The loop trains the critic of what follows the Adversarial protocol: none with a critic may miss part of it."""
    has_critic = "critic_lr" in {field.name for field in dataclasses.fields(make_objective(spec))}
    assert (spec in ADVERSARIAL) == has_critic


@pytest.mark.parametrize("spec", ADVERSARIAL)
def test_critic_and_encoder_each_get_their_own_gradients(spec):
    x, posterior, z, likelihood = batch(spec)
    called = built(make_objective(spec))
    theirs = list(called.critic_parameters())
    (called(Batch(x, posterior, z, likelihood)).loss + called.encoder_loss(z, torch.Generator())).backward()
    assert all(weight.grad is None for weight in theirs)
    assert float(posterior.mu.grad.abs().sum()) > 0
    posterior.mu.grad = None
    called.critic_loss(z, torch.Generator()).backward()
    assert all(float(weight.grad.abs().sum()) > 0 for weight in theirs)
    assert posterior.mu.grad is None


def test_weights_by_name():
    assert make_objective("wise_ale", prior_weight="paper").effective_weight(64, 1000) == 1 / 64
    assert make_objective("wise_ale", prior_weight="1/M").effective_weight(64, 1000) == 1 / 64
    assert make_objective("wise_ale:prior_weight=1/N").effective_weight(64, 1000) == 1 / 1000
    assert make_objective("wise_ale:prior_weight=1/16").effective_weight(64, 1000) == 1 / 16
    assert make_objective("wise_ale").effective_weight(64, 1000) == 1
    assert make_objective("beta_vae").effective_weight(64, 1000) == 4


def test_one_over_n_needs_n():
    with pytest.raises(ConfigError, match="number of training samples"):
        make_objective("wise_ale:prior_weight=1/N")(Batch(*batch("wise_ale")))


def test_aevb_is_beta_vae_with_beta_one():
    torch.testing.assert_close(terms_of("aevb", *batch("aevb")).loss, terms_of("beta_vae:beta=1", *batch("aevb")).loss)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("wise_al", "did you mean 'wise_ale'"),
        ("vae", "unknown objective 'vae': it is called 'aevb' here "),
        ("beta-vae", "it is called 'beta_vae' here"),
        ("β-VAE:beta=4", "it is called 'beta_vae' here"),
        ("WAE", "it is called 'wae_mmd' here"),
        ("InfoVAE", "it is called 'info_vae' here"),
        ("ae", r"unknown objective 'ae' \(known"),
        ("pca", r"unknown objective 'pca' \(known"),
        ("diffusion", r"unknown objective 'diffusion' \(known"),
        ("wise_ale:prior_wieght=1", "did you mean 'prior_weight'"),
        ("wise_ale:estimator=exact", "must be 'jensen' or 'bhattacharyya' or 'tightest' or 'mc', got 'exact'"),
        ("wise_ale:prior_weight=-1", "must be above 0, got -1"),
        ("wise_ale:prior_weight=inf", "must be finite"),
        ("beta_vae:beta=0", "must be above 0"),
        ("wise_ale:jensen", "name:key=value"),
        ("gmvae:clusters=0", "must be at least 1"),
        ("wae_mmd:encoder=stochastic", "must be 'deterministic' or 'gaussian', got 'stochastic'"),
        ("sinkhorn_ae:epsilon=0", "must be above 0"),
        ("wae_gan:critic_width=0", "must be at least 1"),
        ("info_vae:alpha=1.5", "alpha must be at most 1, got 1.5"),
        ("info_vae:alpha=0,lambda_mmd=0.5", "lambda_mmd must be at least 1 − alpha = 1, got 0.5"),
        ("dip_vae:kind=iii", "must be 'i' or 'ii'"),
    ],
)
def test_a_wrong_spec_is_refused_in_words(spec, message):
    with pytest.raises(ConfigError, match=message):
        make_objective(spec)
