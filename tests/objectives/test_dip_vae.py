import numpy as np
import pytest
import torch

from wiseale.likelihoods import Gaussian
from wiseale.objectives import Batch, make_objective
from wiseale.posterior import Posterior


def penalty(spec, mu, sigma):
    x = torch.zeros(len(mu), 1, dtype=mu.dtype)
    terms = make_objective(spec)(Batch(x, Posterior(mu, sigma), mu, Gaussian(x, 1.0)))
    aevb = make_objective("aevb")(Batch(x, Posterior(mu, sigma), mu, Gaussian(x, 1.0)))
    assert float(terms.loss - aevb.loss) == pytest.approx(float(terms.details["covariance_penalty"]))
    return float(terms.details["covariance_penalty"])


def from_numpy(mu, sigma, kind, lambda_od, lambda_d):
    covariance = np.cov(mu.numpy().T, bias=True)
    if kind == "ii":
        covariance = covariance + np.diag((sigma.numpy() ** 2).mean(0))
    off = covariance[~np.eye(len(covariance), dtype=bool)]
    return lambda_od * (off**2).sum() + lambda_d * ((np.diag(covariance) - 1) ** 2).sum()


@pytest.mark.parametrize("m", [2, 30])
@pytest.mark.parametrize(
    ("spec", "weights"),
    [
        ("dip_vae", ("i", 10, 100)),
        ("dip_vae:kind=ii", ("ii", 10, 10)),
        ("dip_vae:lambda_od=3,lambda_d=0.5", ("i", 3, 0.5)),
        ("dip_vae:kind=ii,lambda_od=2,lambda_d=none", ("ii", 2, 2)),
    ],
)
def test_penalty_against_numpy(m, spec, weights):
    g = torch.Generator().manual_seed(m)
    mu, raw = 2 + 3 * torch.randn(2, m, 3, generator=g, dtype=torch.float64)
    sigma = (0.1 * raw).exp()
    assert penalty(spec, mu, sigma) == pytest.approx(from_numpy(mu, sigma, *weights))


def test_penalty_vanishes_for_codes_of_unit_covariance():
    corners = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    assert penalty("dip_vae", corners + 5, torch.full((4, 2), 0.1)) == pytest.approx(0, abs=1e-5)
    halved = corners * 0.75**0.5
    assert penalty("dip_vae:kind=ii", halved + 5, torch.full((4, 2), 0.5)) == pytest.approx(0, abs=1e-5)


def test_an_offset_beside_a_small_spread_survives_float32():
    """Centred before it is squared: E[μμᵀ] − E[μ]E[μ]ᵀ would lose all of it."""
    corners = 1e-2 * torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    mu, x = corners + 100, torch.zeros(4, 1)
    objective = make_objective("dip_vae:lambda_od=1,lambda_d=1")
    found = objective(Batch(x, Posterior(mu, torch.ones(4, 2)), mu, Gaussian(x, 1.0))).details["covariance_penalty"]
    assert float(found) == pytest.approx(2 * (1e-4 - 1) ** 2, rel=1e-5)
