import pytest
import torch

from wiseale.likelihoods import Gaussian
from wiseale.objectives import Batch, make_objective
from wiseale.posterior import Posterior


def loss(spec):
    g = torch.Generator().manual_seed(0)
    x, x_hat = torch.randn(2, 12, 5, generator=g, dtype=torch.float64)
    mu, raw, epsilon = torch.randn(3, 12, 3, generator=g, dtype=torch.float64)
    posterior = Posterior(mu, raw.exp())
    terms = make_objective(spec)(
        Batch(x, posterior, posterior.sample(epsilon), Gaussian(x_hat, 0.5), generator=torch.Generator().manual_seed(1))
    )
    return float(terms.loss)


def test_alpha_zero_lambda_one_is_aevb():
    assert loss("info_vae:alpha=0,lambda_mmd=1") == pytest.approx(loss("aevb"), rel=1e-12)


@pytest.mark.parametrize("weight", [1, 100])
def test_alpha_one_is_wae_mmd_with_a_gaussian_encoder(weight):
    wae = loss(f"wae_mmd:encoder=gaussian,prior_weight={weight}")
    assert loss(f"info_vae:alpha=1,lambda_mmd={weight}") == pytest.approx(wae, rel=1e-12)


def test_between_the_limits_the_weights_are_one_minus_alpha_and_alpha_plus_lambda_minus_one():
    reconstruction = loss("beta_vae:beta=1e-30")
    kl = loss("aevb") - reconstruction
    mmd = loss("wae_mmd:encoder=gaussian,prior_weight=1") - reconstruction
    expected = reconstruction + 0.7 * kl + (0.3 + 5 - 1) * mmd
    assert loss("info_vae:alpha=0.3,lambda_mmd=5") == pytest.approx(expected)
