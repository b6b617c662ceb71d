import numpy as np
import pytest
import torch
from tests.evaluation.models import Decoder, case_of, ignore

from wiseale.evaluation.encoded import psnr, ssim
from wiseale.evaluation.reconstruction import image_quality
from wiseale.posterior import Posterior
from wiseale.spaces.units import Affine


def images(n=3, channels=2, height=16, width=13, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(size=(n, channels, height, width))
    x_hat = np.clip(0.6 * x + 0.2 + 0.1 * generator.normal(size=x.shape), 0, 1)
    return x, x_hat


def ssim_by_windows(a, b):
    """Wang et al. (2004), equation (13) for one channel, every window in turn, moments as weighted sums."""
    offsets = np.arange(11) - 5
    window = np.exp(-(offsets[:, None] ** 2 + offsets**2) / (2 * 1.5**2))
    window /= window.sum()
    values = []
    for i in range(a.shape[0] - 10):
        for j in range(a.shape[1] - 10):
            p, q = a[i : i + 11, j : j + 11], b[i : i + 11, j : j + 11]
            mean_p, mean_q = (window * p).sum(), (window * q).sum()
            var_p, var_q = (window * (p - mean_p) ** 2).sum(), (window * (q - mean_q) ** 2).sum()
            both = (window * (p - mean_p) * (q - mean_q)).sum()
            values.append(
                (2 * mean_p * mean_q + 1e-4)
                * (2 * both + 9e-4)
                / ((mean_p**2 + mean_q**2 + 1e-4) * (var_p + var_q + 9e-4))
            )
    return np.mean(values)


def test_ssim_window_by_window():
    x, x_hat = images()
    expected = [
        np.mean([ssim_by_windows(x[i, channel], x_hat[i, channel]) for channel in range(x.shape[1])])
        for i in range(len(x))
    ]
    assert all(0.2 < value < 0.95 for value in expected)
    assert ssim(torch.from_numpy(x), torch.from_numpy(x_hat)).tolist() == pytest.approx(expected, rel=1e-9)


def test_ssim_is_one_for_the_same_image_and_symmetric():
    x, x_hat = (torch.from_numpy(a) for a in images())
    assert ssim(x, x).tolist() == pytest.approx([1, 1, 1])
    assert ssim(x, x_hat).tolist() == pytest.approx(ssim(x_hat, x).tolist())


def test_psnr_of_a_constant_error():
    x = torch.rand(2, 1, 4, 4)
    x_hat = x + torch.tensor([0.1, 0.01])[:, None, None, None]
    assert psnr(x, x_hat).tolist() == pytest.approx([20, 40], rel=1e-4)


def quality(x, x_hat, units=None):
    model = Decoder(lambda z: z.view(-1, *x.shape[1:]), x.shape[1:], x[0].size)
    if units is not None:
        model.units = units
    codes = torch.from_numpy(np.asarray(x_hat, np.float32)).flatten(1)
    return image_quality(case_of(model, x, Posterior(codes, torch.full_like(codes, 1e-9))), ignore)


def test_images_are_compared_in_the_users_range():
    x, x_hat = images()
    plain = quality(x, x_hat).measures
    # The same images as a model with standardised units sees them.
    units = Affine(torch.tensor(0.4), torch.tensor(0.25))
    inside = quality(x, (x_hat - 0.4) / 0.25, units).measures
    assert all(value > 0 for value in plain.values())
    assert inside == pytest.approx(plain, rel=1e-4)
    mse = ((x - x_hat) ** 2).reshape(3, -1).mean(1)
    assert plain["psnr_at_mu"] == pytest.approx(np.mean(-10 * np.log10(mse)), rel=1e-4)


def test_what_cannot_be_compared_says_why():
    x, x_hat = images()
    assert "pixels go from" in quality(x * 255, x_hat * 255).reasons["psnr"]
    small = quality(x[:, :, :8], x_hat[:, :, :8])
    assert small.measures["psnr"] is not None
    assert small.measures["ssim"] is None
    assert "smaller than the window" in small.reasons["ssim"]
    assert "not images" in quality(x.reshape(3, 2, -1), x_hat.reshape(3, 2, -1)).reasons["ssim_at_mu"]
    assert quality(x, x).reasons["psnr_at_mu"] == "came out as inf"
