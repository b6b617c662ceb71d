import pytest
import torch
from tests.objectives.shifted_codes import assert_moved_onto_the_prior, train_shifted_codes

from wiseale.divergences.samples import sinkhorn_cost, sinkhorn_divergence
from wiseale.likelihoods import Gaussian
from wiseale.objectives import Batch, make_objective
from wiseale.posterior import Posterior


def prior_of(spec, z, seed=0):
    x = torch.zeros(len(z), 2)
    called = make_objective(spec)
    return called(Batch(x, Posterior(z), z, Gaussian(x, 1.0), generator=torch.Generator().manual_seed(seed))).prior


@pytest.mark.parametrize(
    ("spec", "distance"),
    [
        ("sinkhorn_ae:epsilon=0.5,iterations=20", sinkhorn_divergence),
        ("sinkhorn_ae:epsilon=0.5,iterations=20,debiased=false", sinkhorn_cost),
    ],
)
def test_the_prior_is_the_distance_to_draws_of_the_given_generator(spec, distance):
    z = torch.randn(9, 3, generator=torch.Generator().manual_seed(1))
    z_prior = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(prior_of(spec, z), distance(z, z_prior, 0.5, 20))


def test_published_form_pulls_codes_together_where_they_already_are_the_draws():
    """At z = z_p the debiased divergence is at its minimum; the sharp cost of a uniform plan falls as codes shrink."""
    z = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    slopes = []
    for debiased in ("true", "false"):
        scale = torch.ones((), requires_grad=True)
        value = prior_of(f"sinkhorn_ae:epsilon=1e3,debiased={debiased}", scale * z)
        slopes.append(float(torch.autograd.grad(value, scale)[0]))
    spread = float(z.square().sum(1).mean() - z.mean(0).square().sum())
    assert slopes == pytest.approx([0, 2 * spread], abs=0.1)


@pytest.mark.parametrize("spec", ["sinkhorn_ae", "sinkhorn_ae:debiased=false"])
def test_shifted_codes_are_moved_onto_the_prior(spec):
    before, after, _ = train_shifted_codes(spec, epochs=6, lr=3e-2)
    assert_moved_onto_the_prior(before, after)
