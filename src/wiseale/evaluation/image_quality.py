"""PSNR and SSIM of images with values between 0 and 1."""

from __future__ import annotations

import torch
from torch import Tensor

WINDOW = 11
_WIDTH = 1.5  # standard deviation of the Gaussian window, in pixels
_IMAGES_AT_ONCE = 16  # the moments of more would leave the processor's cache


def psnr(x: Tensor, x_hat: Tensor) -> Tensor:
    """Peak signal-to-noise ratio −10·log10(mean squared error) in dB for a data range of 1, (M,), float64."""
    return -10 * (x - x_hat).flatten(1).double().square().mean(1).log10()


def ssim(x: Tensor, x_hat: Tensor) -> Tensor:
    """Structural similarity (Wang et al. 2004) for a data range of 1, mean over windows and channels, (M,), float64.

    Gaussian windows of 11 by 11 pixels and standard deviation 1.5 that lie wholly inside the image (M, C, H, W);
    moments are the windows' weighted ones, C1 = 0.01², C2 = 0.03².
    """
    down, across = _windows(x.shape[-2]), _windows(x.shape[-1]).T
    pairs = zip(torch.split(x, _IMAGES_AT_ONCE), torch.split(x_hat, _IMAGES_AT_ONCE), strict=True)
    return torch.cat([_ssim(a.double(), b.double(), down, across) for a, b in pairs])


def _ssim(a: Tensor, b: Tensor, down: Tensor, across: Tensor) -> Tensor:
    mean_a, mean_b, square_a, square_b, product = down @ torch.stack((a, b, a * a, b * b, a * b)) @ across
    variance_a, variance_b = square_a - mean_a**2, square_b - mean_b**2
    covariance = product - mean_a * mean_b
    light = (2 * mean_a * mean_b + 0.01**2) / (mean_a**2 + mean_b**2 + 0.01**2)
    structure = (2 * covariance + 0.03**2) / (variance_a + variance_b + 0.03**2)
    by_image: Tensor = (light * structure).flatten(1).mean(1)
    return by_image


def _windows(size: int) -> Tensor:
    """Weights of every window along an axis, (size − 10, size): as matrix products far faster than convolutions."""
    distance = torch.arange(size, dtype=torch.float64) - torch.arange(size - WINDOW + 1)[:, None] - WINDOW // 2
    weights = torch.exp(-0.5 * (distance / _WIDTH).square()) * (distance.abs() <= WINDOW // 2)
    return weights / weights.sum(1, keepdim=True)
