"""Sums over all pairs of posteriors with their gradients, tile by tile: the kernel under the analytic bounds.

For a symmetric log kernel k(i, j) of diagonal Gaussians, :func:`log_mean_pairs` returns log (1/M) Σ_j exp k(i, j) for
every i. A tile is laid out (d_z, rows, M), so that the innermost loop runs over M contiguous numbers, and is small
enough to stay in a core's cache. The gradient is analytic: one pass finds the row sums, a second one recomputes each
tile and adds up the gradients, so memory is O(M·d_z + tile), whatever M is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from wiseale.posterior import LOG_2PI, Posterior

_TILE_ENTRIES = 1 << 18  # numbers in a (d_z, rows, M) tile: 1 MB in float32


@dataclass(frozen=True)
class PairKernel:
    """log k(i, j) = −Σ_c [ quadratic·Δ_c²/v_c + logarithmic·log v_c ] + own·(Σ log σ_i + Σ log σ_j) + constant·d_z.

    Δ is the difference of the means and v = σ_i² + σ_j².
    """

    quadratic: float
    logarithmic: float
    own: float
    constant: float


OVERLAP = PairKernel(quadratic=0.5, logarithmic=0.5, own=0.0, constant=-0.5 * LOG_2PI)
"""log ∫ q_i q_j dz."""

BHATTACHARYYA = PairKernel(quadratic=0.25, logarithmic=0.5, own=0.5, constant=0.5 * math.log(2))
"""log ∫ √(q_i q_j) dz."""


def log_mean_pairs(posterior: Posterior, kernel: PairKernel) -> Tensor:
    """log (1/M) Σ_j exp k(i, j) for every i, (M,); differentiable once."""
    sums: Tensor = _LogSumPairs.apply(posterior.mu, posterior.sigma, kernel)  # type: ignore[no-untyped-call]
    return sums - math.log(len(posterior))


class _LogSumPairs(torch.autograd.Function):
    """log Σ_j exp k(i, j), (M,)."""

    @staticmethod
    def forward(ctx: Any, mu: Tensor, sigma: Tensor, kernel: PairKernel) -> Tensor:
        tiles = _Tiles(mu, sigma, kernel)
        log_sums = torch.empty(len(mu), dtype=mu.dtype, device=mu.device)
        for rows in tiles.rows():
            log_sums[rows] = tiles.log_kernel(rows)[0].logsumexp(-1)
        ctx.save_for_backward(mu, sigma, log_sums)
        ctx.kernel = kernel
        return log_sums

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        mu, sigma, log_sums = ctx.saved_tensors
        kernel: PairKernel = ctx.kernel
        tiles = _Tiles(mu, sigma, kernel)
        grad_mu, grad_sigma = torch.empty_like(tiles.mu), torch.empty_like(tiles.sigma)
        for rows in tiles.rows():
            log_k, variance, square, difference = tiles.log_kernel(rows)
            # k is symmetric: row i meets entry (i, j) through its own sum and through that of row j.
            weight = (log_k - log_sums[rows, None]).exp_().mul_(grad[rows, None])
            weight += (log_k - log_sums).exp_().mul_(grad)
            square.mul_(2 * kernel.quadratic).sub_(2 * kernel.logarithmic).div_(variance)
            grad_sigma[:, rows] = torch.einsum("drm,rm->dr", square, weight).mul_(tiles.sigma[:, rows])
            grad_mu[:, rows] = torch.einsum("drm,rm->dr", difference, weight).mul_(-2 * kernel.quadratic)
            if kernel.own:
                grad_sigma[:, rows] += kernel.own * weight.sum(-1) / tiles.sigma[:, rows]
        return grad_mu.mT, grad_sigma.mT, None


class _Tiles:
    """The kernel on blocks of rows, with what its derivatives need."""

    def __init__(self, mu: Tensor, sigma: Tensor, kernel: PairKernel) -> None:
        self.mu, self.sigma = mu.mT.contiguous(), sigma.mT.contiguous()
        self._variance = self.sigma.square()
        self._kernel = kernel
        self._own = kernel.own * self.sigma.log().sum(0) + 0.5 * kernel.constant * len(self.mu) if kernel.own else None

    def rows(self) -> list[slice]:
        d_z, m = self.mu.shape
        size = max(1, _TILE_ENTRIES // (d_z * m))
        return [slice(start, min(start + size, m)) for start in range(0, m, size)]

    def log_kernel(self, rows: slice) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """log k (rows, M), and by dimension v, Δ²/v and Δ/v, each (d_z, rows, M)."""
        kernel = self._kernel
        variance = self._variance[:, rows, None] + self._variance[:, None]
        difference = self.mu[:, rows, None] - self.mu[:, None]
        ratio = difference / variance
        square = difference.mul_(ratio)
        log_k = torch.add(square.sum(0).mul_(-kernel.quadratic), variance.log().sum(0), alpha=-kernel.logarithmic)
        if self._own is None:
            log_k += kernel.constant * len(self.mu)
        else:
            log_k += self._own[rows, None]
            log_k += self._own
        return log_k, variance, square, ratio
