import pytest
import torch
from tests.objectives.shifted_codes import assert_moved_onto_the_prior, train_shifted_codes

from wiseale.divergences.samples import squared_mmd
from wiseale.likelihoods import Gaussian
from wiseale.objectives import Batch, make_objective
from wiseale.posterior import Posterior


def test_the_prior_is_the_mmd_to_draws_of_the_given_generator():
    z, x = torch.randn(9, 3, generator=torch.Generator().manual_seed(0)), torch.zeros(9, 4)
    terms = make_objective("wae_mmd")(
        Batch(x, Posterior(z), z, Gaussian(x, 1.0), generator=torch.Generator().manual_seed(7))
    )
    z_prior = torch.randn(9, 3, generator=torch.Generator().manual_seed(7))
    assert torch.equal(terms.prior, squared_mmd(z, z_prior))


def test_a_gaussian_encoder_is_judged_by_its_draws():
    objective = make_objective("wae_mmd:encoder=gaussian")
    posterior, x = Posterior(torch.zeros(200, 2), torch.full((200, 2), 3.0)), torch.zeros(200, 1)
    noise = torch.randn(200, 2, generator=torch.Generator().manual_seed(1))
    wide, narrow = (
        objective(Batch(x, posterior, z, Gaussian(x, 1.0), generator=torch.Generator().manual_seed(2))).prior
        for z in (posterior.sample(noise), noise)
    )
    assert float(wide) > 20 * abs(float(narrow))


def test_the_encoder_is_deterministic_unless_asked():
    assert not make_objective("wae_mmd").stochastic
    assert make_objective("wae_mmd:encoder=gaussian").stochastic


@pytest.mark.parametrize(("weight", "their_range", "expected"), [(10, 1, 100), (100, 2, 250)])
def test_the_stated_conversion_of_the_paper_s_weight_keeps_the_optimum(weight, their_range, expected):
    """0.05·Σ squared error on their range + λ·MMD is our loss at x_sigma = 1 on [0, 1], up to one factor."""
    x, x_hat = torch.rand(2, 5, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    z = torch.randn(5, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    terms = make_objective("wae_mmd", prior_weight=expected)(
        Batch(x, Posterior(z), z, Gaussian(x_hat, 1.0), generator=torch.Generator().manual_seed(2))
    )
    constant = float(terms.reconstruction.mean()) - float((x - x_hat).square().sum(1).mean()) / 2
    theirs = 0.05 * ((x - x_hat) * their_range).square().sum(1).mean() + weight * terms.prior
    factor = 0.5 / (0.05 * their_range**2)
    torch.testing.assert_close(terms.loss - constant, factor * theirs)


@pytest.mark.parametrize("spec", ["wae_mmd", "wae_mmd:encoder=gaussian"])
def test_shifted_codes_are_moved_onto_the_prior(spec):
    before, after, _ = train_shifted_codes(spec, epochs=6, lr=3e-2)
    assert_moved_onto_the_prior(before, after)
