import pytest
import torch
from tests.objectives.shifted_codes import assert_moved_onto_the_prior, train_shifted_codes
from torch import nn
from torch.nn import functional as F

from wiseale.likelihoods import Gaussian
from wiseale.networks.model import seeded
from wiseale.objectives import Batch, make_objective
from wiseale.posterior import Posterior
from wiseale.spaces import plain_space


def build(spec):
    with seeded(0):
        return make_objective(spec).build(plain_space((4,)), 3)


def test_the_main_loss_is_the_reconstruction_alone_and_the_prior_is_reported():
    called = build("aae")
    x, x_hat, z = (torch.randn(9, n, generator=torch.Generator().manual_seed(n)) for n in (4, 4, 3))
    terms = called(Batch(x, Posterior(z.requires_grad_()), z, Gaussian(x_hat, 0.5)))
    assert torch.equal(terms.loss, terms.reconstruction.mean())
    torch.testing.assert_close(terms.prior, F.binary_cross_entropy_with_logits(called.critic(z), torch.ones(9)))
    assert not terms.prior.requires_grad
    assert make_objective("aae").effective_weight(64, 1000) == 0


def test_critic_is_the_paper_s_and_the_encoder_has_a_step_of_its_own():
    called = build("aae:encoder_lr=3e-4")
    shapes = [tuple(part.weight.shape) for part in called.critic.layers if isinstance(part, nn.Linear)]
    assert shapes == [(1000, 3), (1000, 1000), (1, 1000)]
    assert called.encoder_lr == 3e-4
    z = torch.randn(9, 3, generator=torch.Generator().manual_seed(3))
    ones = torch.ones(9)
    torch.testing.assert_close(
        called.encoder_loss(z, torch.Generator()), F.binary_cross_entropy_with_logits(called.critic(z), ones)
    )


def test_the_encoder_is_gaussian_unless_asked():
    assert make_objective("aae").stochastic
    assert not make_objective("aae:encoder=deterministic").stochastic


# A narrow critic and higher rates than the defaults, so that some hundred steps are enough and take seconds.
@pytest.mark.parametrize("encoder", ["gaussian", "deterministic"])
def test_shifted_codes_are_moved_onto_the_prior(encoder):
    spec = f"aae:encoder={encoder},critic_width=64,critic_lr=2e-3,encoder_lr=2e-2"
    before, after, records = train_shifted_codes(spec, epochs=8, lr=1e-3)
    assert_moved_onto_the_prior(before, after)
    assert {"critic_loss", "encoder_loss", "prior"} <= set(records[-1].train)
    assert records[-1].train["loss"] == pytest.approx(records[-1].train["reconstruction"])


def test_without_the_encoder_s_step_codes_stay_where_they_are():
    """The control: reconstruction alone does not move them, so it is the adversary that did."""
    spec = "aae:critic_width=64,critic_lr=2e-3,encoder_lr=1e-9"
    _, after, _ = train_shifted_codes(spec, epochs=2, lr=1e-3)
    assert float((after.mean(0) - 3).abs().max()) < 0.3
