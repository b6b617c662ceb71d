"""PSNR and SSIM of images with values between 0 and 1."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

WINDOW = 11
_WIDTH = 1.5  # standard deviation of the Gaussian window, in pixels


def psnr(x: Tensor, x_hat: Tensor) -> Tensor:
    """Peak signal-to-noise ratio −10·log10(mean squared error) in dB for a data range of 1, (M,), float64."""
    return -10 * (x - x_hat).flatten(1).double().square().mean(1).log10()


def ssim(x: Tensor, x_hat: Tensor) -> Tensor:
    """Structural similarity (Wang et al. 2004) for a data range of 1, mean over windows and channels, (M,), float64.

    Gaussian windows of 11 by 11 pixels and standard deviation 1.5 that lie wholly inside the image (M, C, H, W);
    moments are the windows' weighted ones, C1 = 0.01², C2 = 0.03².
    """
    offsets = torch.arange(WINDOW, dtype=torch.float64, device=x.device) - WINDOW // 2
    weights = torch.softmax(-0.5 * (offsets / _WIDTH).square(), 0)

    def blur(images: Tensor) -> Tensor:
        rows = F.conv2d(images.flatten(0, 1)[:, None], weights[None, None, :, None])
        return F.conv2d(rows, weights[None, None, None, :])

    a, b = x.double(), x_hat.double()
    mean_a, mean_b = blur(a), blur(b)
    variance_a, variance_b = blur(a * a) - mean_a**2, blur(b * b) - mean_b**2
    covariance = blur(a * b) - mean_a * mean_b
    light = (2 * mean_a * mean_b + 0.01**2) / (mean_a**2 + mean_b**2 + 0.01**2)
    structure = (2 * covariance + 0.03**2) / (variance_a + variance_b + 0.03**2)
    return (light * structure).reshape(len(x), -1).mean(1)
