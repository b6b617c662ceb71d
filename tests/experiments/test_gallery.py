"""Codes that the pictures decode: a model that returns its codes shows them."""

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from scipy import stats
from tests.evaluation.models import Decoder, case_of

from wiseale.evaluation import prior_match
from wiseale.experiments import figures as gallery
from wiseale.experiments import systems as s
from wiseale.experiments.comparison import Estimate
from wiseale.figures.decoded_pictures import prior_grid, spread_rows, traversal
from wiseale.figures.style import Folder
from wiseale.posterior import Posterior

MU = torch.tensor(np.random.default_rng(1).normal([0, 5, -2], [1, 0.1, 3], size=(400, 3)), dtype=torch.float32)


def encoded(q, factors=None):
    model = Decoder(lambda z: z, (q.latent_dim,), q.latent_dim)
    model.stochastic = q.sigma is not None
    return case_of(model, np.zeros(q.mu.shape), q, factors).encoded


@pytest.mark.parametrize("sigma", [None, 0.5])
def test_a_traversal_moves_one_unit_over_two_standard_deviations_of_its_codes(sigma):
    q = Posterior(MU) if sigma is None else Posterior(MU, torch.full_like(MU, sigma))
    made = traversal(encoded(q), 7, range(3))
    assert made.units == ("z1", "z2", "z3")
    values = made.values  # (units, steps, codes)
    spread = np.sqrt(MU.numpy().var(0) + (sigma or 0) ** 2)
    for unit in range(3):
        others = [k for k in range(3) if k != unit]
        assert (values[unit][:, others] == MU[7, others].numpy()).all()
        ends = MU[:, unit].mean().item() + np.array([-2, 2]) * spread[unit]
        np.testing.assert_allclose(values[unit][[0, -1], unit], ends, rtol=1e-4)
        np.testing.assert_allclose(np.diff(values[unit][:, unit], 2), 0, atol=1e-5)


def test_a_traversal_shows_the_units_that_vary_most():
    mu = torch.randn(200, 12, generator=torch.Generator().manual_seed(0)) * torch.arange(12)
    assert traversal(encoded(Posterior(mu)), 0, range(12)).units == ("z8", "z9", "z10", "z11", "z12")


def test_cells_of_the_grid_hold_equal_prior_mass():
    mass = stats.norm.cdf(prior_grid(5).numpy())
    expected = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    np.testing.assert_allclose(mass[:, :, 0], np.tile(expected, (5, 1)), atol=1e-6)
    np.testing.assert_allclose(mass[:, :, 1], np.tile(expected[:, None], (1, 5)), atol=1e-6)


def test_shown_rows_run_over_the_first_factor():
    factor = np.random.default_rng(0).permutation(400)
    rows = spread_rows(encoded(Posterior(MU), {"size": factor})).numpy()
    assert factor[rows].tolist() == sorted(factor[rows].tolist())
    assert {0, 399} <= set(factor[rows])


def test_the_sandwich_is_made_of_what_evaluation_measures():
    assert set(gallery._SANDWICH.values()) <= set(prior_match.PRIOR_MATCH)


def test_aevb_is_a_beta_vae_of_the_sweep_and_with_a_warm_up_it_is_not():
    family = {one.name: gallery._family(one) for one in (s.AEVB, s.BETA_VAE, s.AEVB_WARM_UP, s.WISE_ALE)}
    assert family[s.AEVB.name] == family[s.BETA_VAE.name]
    assert len(set(family.values())) == 3


def test_the_error_bar_of_the_sandwich_is_that_of_a_mean(tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr(gallery, "bound_sandwich", lambda found: drawn.update(found) or Figure())
    measures = dict.fromkeys(gallery._SANDWICH.values(), Estimate(0.2, None, 4))
    gallery._sandwich(Folder(tmp_path), {"AEVB": measures})
    assert drawn["AEVB"].mc_standard_error == 0.1
