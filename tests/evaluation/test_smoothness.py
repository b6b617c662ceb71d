import numpy as np
import pytest
import torch
from tests.evaluation.models import Decoder, LinearGaussian, case_of, ignore

from wiseale.evaluation.reconstruction import code_spread, path_curvature, smoothness
from wiseale.posterior import Posterior


def test_a_linear_decoder_is_straight():
    model = LinearGaussian(x_dim=20, latent_dim=3)
    curvature = path_curvature(model, torch.randn(50, 3), torch.randn(50, 3))
    assert len(curvature) == 50
    assert curvature.max() < 1e-6


def test_the_curvature_of_a_parabola():
    # x = z²: every second difference is 2·((b − a)/10)², so the measure is 4·(b − a)⁴/(b² − a²)².
    start, stop = torch.tensor([[0.5], [-1.0], [2.0]]), torch.tensor([[1.5], [3.0], [2.2]])
    expected = 4 * (stop - start).double() ** 2 / (stop + start).double() ** 2
    curvature = path_curvature(Decoder(torch.square, (1,), 1), start, stop)
    assert curvature.tolist() == pytest.approx(expected[:, 0].tolist(), rel=1e-3)


def test_mean_and_median_over_random_pairs_of_rows():
    # x = z² between rows at 1, 2 and 4: pairs give 4/9, 4·9/25 and 4·4/36, each in a third of the paths.
    mu = torch.tensor([1.0, 2.0, 4.0]).repeat(40)[:, None]
    case = case_of(Decoder(torch.square, (1,), 1), mu.square(), Posterior(mu, torch.ones_like(mu)))
    found = smoothness(case, ignore).measures
    assert 280 < found["path_curvature_paths"] < 380  # of 500, those between different values
    assert found["path_curvature"] == pytest.approx((4 / 9 + 4 * 9 / 25 + 16 / 36) / 3, abs=0.1)
    assert found["path_curvature_median"] == pytest.approx(4 / 9, rel=1e-3)


def test_paths_that_lead_nowhere_are_left_out():
    curvature = path_curvature(Decoder(torch.square, (1,), 1), torch.tensor([[-1.0], [0.0]]), torch.ones(2, 1))
    assert curvature.tolist() == pytest.approx([4], rel=1e-3)  # from 0 to 1; from −1 to 1 the ends are equal
    case = case_of(
        Decoder(lambda z: torch.full((len(z), 4), 3.0), (4,), 2),
        np.zeros((30, 4)),
        Posterior(torch.randn(30, 2), torch.ones(30, 2)),
    )
    found = smoothness(case, ignore)
    assert found.measures["reconstruction_rise"] == 0
    assert found.measures["path_curvature"] is None
    assert "the same at both ends" in found.reasons["path_curvature"]


def test_the_rise_of_a_linear_decoder_in_closed_form():
    model = LinearGaussian(x_dim=9, latent_dim=3, x_sigma=0.2)
    q = Posterior(torch.randn(500, 3) * torch.tensor([1.0, 2.0, 0.1]), torch.rand(500, 3) + 0.1)
    case = case_of(model, model.decode(q.mu).mean, q)
    spread = np.sqrt(q.mu.numpy().var(0, ddof=1) + np.square(q.sigma.numpy()).mean(0))
    assert code_spread(case).tolist() == pytest.approx(spread.tolist(), rel=1e-5)
    # Rows are exactly their decoded means, so only the squared move is left: ½ Σ_k (0.1·s_k)²·‖w_k‖²/x_sigma².
    expected = 0.5 * (np.square(0.1 * spread) * np.square(model.w.numpy()).sum(0)).sum() / 0.2**2
    assert smoothness(case, ignore).measures["reconstruction_rise"] == pytest.approx(expected, rel=1e-3)
