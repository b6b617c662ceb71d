"""Sums over all pairs of posteriors with their gradients, tile by tile: the kernel under the analytic bounds.

For a symmetric log kernel k(i, j) of diagonal Gaussians, :func:`log_mean_pairs` returns log (1/M) Σ_j exp k(i, j) for
every i. A tile is laid out (d_z, rows, M), so that the innermost loop runs over M contiguous numbers, and is small
enough to stay in a core's cache. The gradient is analytic: one pass finds the row sums, a second one recomputes each
tile and adds up the gradients, so memory is O(M·d_z + tile), whatever M is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from wiseale.pair_streams import log_sum_symmetric, streams
from wiseale.posterior import LOG_2PI, Posterior

_TILE_ENTRIES = 1 << 18  # numbers in a (d_z, rows, M) tile: 1 MB in float32


@dataclass(frozen=True)
class PairKernel:
    """log k(i, j) = −Σ_c [ quadratic·Δ_c²/v_c + ½ log v_c ] + own·(Σ log σ_i + Σ log σ_j) + constant·d_z.

    Δ is the difference of the means and v = σ_i² + σ_j².
    """

    quadratic: float
    own: float
    constant: float


OVERLAP = PairKernel(quadratic=0.5, own=0.0, constant=-0.5 * LOG_2PI)
"""log ∫ q_i q_j dz."""

BHATTACHARYYA = PairKernel(quadratic=0.25, own=0.5, constant=0.5 * math.log(2))
"""log ∫ √(q_i q_j) dz."""


def log_mean_pairs(posterior: Posterior, kernel: PairKernel) -> Tensor:
    """log (1/M) Σ_j exp k(i, j) for every i, (M,); differentiable once."""
    if streams(len(posterior) ** 2, posterior.mu, posterior.sigma):
        found = log_sum_symmetric(posterior, kernel.quadratic, kernel.own)
        if found is not None:
            constant = kernel.constant * posterior.latent_dim - math.log(len(posterior))
            return found.add_(constant).to(posterior.mu.dtype)
    sums: Tensor = _LogSumPairs.apply(posterior.mu, posterior.sigma, kernel)  # type: ignore[no-untyped-call]
    return sums - math.log(len(posterior))


class _LogSumPairs(torch.autograd.Function):
    """log Σ_j exp k(i, j), (M,)."""

    @staticmethod
    def forward(ctx: Any, mu: Tensor, sigma: Tensor, kernel: PairKernel) -> Tensor:
        tiles = _Tiles(mu, sigma, kernel)
        blocks = tiles.rows()
        ctx.tiles = tiles
        if len(blocks) == 1:  # nothing to gain from computing it twice
            ctx.kept = tiles.evaluate(blocks[0])
            log_sums: Tensor = ctx.kept.log_k.logsumexp(-1)
        else:
            ctx.kept = None
            log_sums = torch.cat([tiles.evaluate(rows).log_k.logsumexp(-1) for rows in blocks])
        ctx.save_for_backward(log_sums)
        return log_sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (log_sums,) = ctx.saved_tensors
        tiles: _Tiles = ctx.tiles
        kernel = tiles.kernel
        parts = []
        for rows in tiles.rows():
            tile = ctx.kept or tiles.evaluate(rows)
            # k is symmetric: row i meets entry (i, j) through its own sum and through that of row j.
            weight = (tile.log_k - log_sums[rows, None]).exp_().mul_(grad[rows, None])
            weight += (tile.log_k - log_sums).exp_().mul_(grad)
            sigma = tiles.sigma[:, rows]
            by_sigma = (2 * kernel.quadratic * tile.square - 1).div_(tile.variance).mul_(weight)
            grad_sigma = by_sigma.sum(-1).mul_(sigma)
            if kernel.own:
                grad_sigma += kernel.own * weight.sum(-1) / sigma
            parts.append((torch.mul(tile.ratio, weight).sum(-1).mul_(-2 * kernel.quadratic), grad_sigma))
        grad_mu, grad_sigma = (torch.cat(part, 1).mT for part in zip(*parts, strict=True))
        return grad_mu, grad_sigma, None


class _Tile(NamedTuple):
    """log k (rows, M), and by dimension v, Δ²/v and Δ/v, each (d_z, rows, M)."""

    log_k: Tensor
    variance: Tensor
    square: Tensor
    ratio: Tensor


class _Tiles:
    """The kernel on blocks of rows, with what its derivatives need."""

    def __init__(self, mu: Tensor, sigma: Tensor, kernel: PairKernel) -> None:
        self.kernel = kernel
        self.sigma = sigma.detach().mT.contiguous()
        self._mu = mu.detach().mT.contiguous()
        self._variance = self.sigma.square()
        self._own = self.sigma.log().sum(0).mul_(kernel.own) if kernel.own else None

    def rows(self) -> list[slice]:
        """Blocks of rows whose tiles fit."""
        d_z, m = self._mu.shape
        size = max(1, _TILE_ENTRIES // (d_z * m))
        return [slice(start, min(start + size, m)) for start in range(0, m, size)]

    def evaluate(self, rows: slice) -> _Tile:
        """One tile."""
        kernel = self.kernel
        variance = self._variance[:, rows, None] + self._variance[:, None]
        difference = self._mu[:, rows, None] - self._mu[:, None]
        ratio = difference / variance
        square = difference.mul_(ratio)
        log_k = torch.add(square.sum(0).mul_(-kernel.quadratic), variance.log().sum(0), alpha=-0.5)
        log_k += kernel.constant * len(self._mu)
        if self._own is not None:
            log_k += self._own[rows, None]
            log_k += self._own
        return _Tile(log_k, variance, square, ratio)
