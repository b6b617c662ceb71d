"""Sums over all pairs of posteriors with their gradients, tile by tile: the kernel under the analytic bounds.

For a symmetric log kernel k(i, j) of diagonal Gaussians, :func:`log_mean_pairs` returns log (1/M) Σ_j exp k(i, j) for
every i. A tile is laid out (d_z, rows, columns), so that the innermost loop runs over contiguous numbers, and is small
enough to stay in a core's cache; only tiles on and above the diagonal are computed, each serving its rows and its
columns. The gradient is analytic: one pass finds the row sums, a second one recomputes each tile and adds up the
gradients, so memory is O(M·d_z + tile) once M is large; k itself is kept while M² of it is small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from wiseale.divergences.streaming import log_sum_symmetric, streams
from wiseale.kernels import pairs
from wiseale.posterior import LOG_2PI, Posterior

_TILE_ENTRIES = 1 << 19  # numbers in a (d_z, rows, columns) tile: 2 MB in float32
_FEW_ENTRIES = 1 << 16  # numbers in all, up to which one tile is not worth its bookkeeping
_KEPT_PAIRS = 1 << 22  # values of k kept for the backward pass: 16 MB in float32


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
    if pairs.takes(posterior.mu, posterior.sigma):
        log_sums = pairs.log_sum_pairs(posterior.mu, posterior.sigma, kernel.quadratic, kernel.own)
        return log_sums + (kernel.constant * posterior.latent_dim - math.log(len(posterior)))
    few = len(posterior) ** 2 * posterior.latent_dim <= _FEW_ENTRIES
    function = _AllAtOnce if few else _InTiles
    means: Tensor = function.apply(posterior.mu, posterior.sigma, kernel)  # type: ignore[no-untyped-call]
    return means


class _AllAtOnce(torch.autograd.Function):
    """log (1/M) Σ_j exp k(i, j), (M,), of so few pairs that the fewest operations win."""

    @staticmethod
    def forward(ctx: Any, mu: Tensor, sigma: Tensor, kernel: PairKernel) -> Tensor:
        mean, width = mu.mT.contiguous(), sigma.mT.contiguous()
        square = width.square()
        variance = square[:, :, None] + square[:, None]
        difference = mean[:, :, None] - mean[:, None]
        ratio = difference / variance
        distance = difference.mul_(ratio)
        log_k = torch.add(distance.sum(0).mul_(-kernel.quadratic), variance.log().sum(0), alpha=-0.5)  # less constants
        if kernel.own:
            own = width.log().sum(0).mul_(kernel.own)
            log_k += own[:, None]
            log_k += own
        log_sums = log_k.logsumexp(1)
        ctx.save_for_backward(log_k, log_sums, variance, distance, ratio, width)
        ctx.kernel = kernel
        return log_sums + (kernel.constant * len(mean) - math.log(len(mu)))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        log_k, log_sums, variance, distance, ratio, width = ctx.saved_tensors
        kernel: PairKernel = ctx.kernel
        by_row = _exp(log_k - log_sums[:, None]).mul_(grad[:, None])
        weight = by_row + by_row.mT  # k is symmetric: row j meets it through the sum of row i as well
        by_sigma = (2 * kernel.quadratic * distance - 1).div_(variance).mul_(weight)
        grad_sigma = by_sigma.sum(2).mul_(width)
        if kernel.own:
            grad_sigma += kernel.own * weight.sum(1) / width
        return (ratio * weight).sum(2).mul_(-2 * kernel.quadratic).mT, grad_sigma.mT, None


def _symmetric_weights(
    log_k: Tensor, row_sums: Tensor, column_sums: Tensor, by_row: Tensor, by_column: Tensor
) -> Tensor:
    """How much each k(i, j) counts: k is symmetric, so row i meets it through its own sum and through that of row j."""
    weight = _exp(log_k - row_sums[:, None]).mul_(by_row[:, None])
    return weight.add_(_exp(log_k - column_sums).mul_(by_column))


def _log_sum_exp(log_k: Tensor, axis: int) -> Tensor:
    peak = log_k.amax(axis, keepdim=True)
    return _exp(log_k - peak).sum(axis).log_().add_(peak.squeeze(axis))


def _exp(x: Tensor) -> Tensor:
    """exp in place; what is negligible beside 1 becomes e^−70, as arithmetic with denormal numbers is slow."""
    return x.clamp_min_(-70).exp_()


class _InTiles(torch.autograd.Function):
    """log (1/M) Σ_j exp k(i, j), (M,)."""

    @staticmethod
    def forward(ctx: Any, mu: Tensor, sigma: Tensor, kernel: PairKernel) -> Tensor:
        tiles = _Pairs(mu, sigma, kernel)
        log_sums = mu.new_full((len(mu),), -math.inf)
        ctx.pairs, ctx.kept = tiles, []
        for tile in tiles.tiles():
            log_k = tiles.evaluate(tile)
            log_sums[tile.rows] = torch.logaddexp(log_sums[tile.rows], _log_sum_exp(log_k, 1))
            after = _log_sum_exp(log_k[:, tile.height :], 0)
            log_sums[tile.beyond] = torch.logaddexp(log_sums[tile.beyond], after)
            if len(mu) ** 2 <= _KEPT_PAIRS:
                ctx.kept.append(log_k)
        ctx.save_for_backward(log_sums)
        return log_sums - math.log(len(mu))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (log_sums,) = ctx.saved_tensors
        tiles: _Pairs = ctx.pairs
        kernel, sigma = tiles.kernel, tiles.sigma
        grad_mu, grad_sigma, weights = torch.zeros_like(sigma), torch.zeros_like(sigma), torch.zeros_like(grad)
        for index, tile in enumerate(tiles.tiles()):
            log_k = ctx.kept[index] if ctx.kept else tiles.evaluate(tile)
            of_rows, of_columns = (log_sums[tile.rows], log_sums[tile.columns])
            weight = _symmetric_weights(log_k, of_rows, of_columns, grad[tile.rows], grad[tile.columns])
            if kernel.own:
                weights[tile.rows] += weight.sum(1)
                weights[tile.beyond] += weight[:, tile.height :].sum(0)
            some = tiles.columns_that_matter(tile, weight)
            if some is not None:
                weight = weight[:, some - tile.start]
            ratio, inverse = tiles.slopes(tile, some)
            by_sigma = inverse.addcmul_(ratio, ratio, value=-2 * kernel.quadratic).mul_(weight)
            by_mu = ratio.mul_(weight)
            grad_mu[:, tile.rows] -= by_mu.sum(2)
            grad_sigma[:, tile.rows] += by_sigma.sum(2)
            inside = tile.height if some is None else int((some < tile.stop).sum())
            others = tile.beyond if some is None else some[inside:]
            grad_mu[:, others] += by_mu[:, :, inside:].sum(1)
            grad_sigma[:, others] += by_sigma[:, :, inside:].sum(1)
        grad_sigma.mul_(-sigma)
        if kernel.own:
            grad_sigma += kernel.own * weights / sigma
        return grad_mu.mul_(2 * kernel.quadratic).mT, grad_sigma.mT, None


@dataclass(frozen=True)
class _Tile:
    """Rows ``start`` to ``stop``, columns ``start`` to ``end``: first the rows themselves, then others beyond."""

    start: int
    stop: int
    end: int

    @property
    def rows(self) -> slice:
        return slice(self.start, self.stop)

    @property
    def columns(self) -> slice:
        return slice(self.start, self.end)

    @property
    def height(self) -> int:
        return self.stop - self.start

    @property
    def beyond(self) -> slice:
        """Columns whose own rows come later: this tile serves them too."""
        return slice(self.stop, self.end)


class _Pairs:
    """The kernel on tiles of pairs, with what its derivatives need."""

    def __init__(self, mu: Tensor, sigma: Tensor, kernel: PairKernel) -> None:
        self.kernel = kernel
        self.sigma = sigma.detach().mT.contiguous()
        self._mu = mu.detach().mT.contiguous()
        self._variance = self.sigma.square()
        self._own = self.sigma.log().sum(0).mul_(kernel.own) if kernel.own else None
        self._on_cpu = mu.device.type == "cpu"
        tile_entries = max(_TILE_ENTRIES, len(self._mu) * len(mu))
        # Allocated once for all tiles: memory fresh from the system is slow.
        self._buffers = [mu.new_empty(tile_entries) for _ in range(2)]
        self._halvings = self._safe_halvings()

    def tiles(self) -> list[_Tile]:
        """Blocks of rows with the columns from their first on, none larger than a tile, the last ones the tallest."""
        d_z, m = self._mu.shape
        tiles, start = [], 0
        while start < m:
            stop = min(m, start + max(1, _TILE_ENTRIES // (d_z * (m - start))))
            tiles.append(_Tile(start, stop, m))
            start = stop
        return tiles

    def evaluate(self, tile: _Tile) -> Tensor:
        """log k, (rows, columns)."""
        kernel = self.kernel
        variance, difference = self._variances_and_differences(tile, None)
        log_k = difference.square_().div_(variance).sum(0).mul_(-kernel.quadratic)
        log_k.add_(self._sum_of_logs(variance), alpha=-0.5).add_(kernel.constant * len(self._mu))
        if self._own is not None:
            log_k += self._own[tile.rows, None]
            log_k += self._own[tile.columns]
        return log_k

    def slopes(self, tile: _Tile, columns: Tensor | None) -> tuple[Tensor, Tensor]:
        """Δ/v and 1/v of a tile, or of some of its columns, each (d_z, rows, columns)."""
        variance, difference = self._variances_and_differences(tile, columns)
        inverse = variance.reciprocal_()
        return difference.mul_(inverse), inverse

    def columns_that_matter(self, tile: _Tile, weight: Tensor) -> Tensor | None:
        """The tile's columns with any weight worth adding, where they are few; None: take all.

        Posteriors that do not overlap have no gradient between them: in many dimensions, that is most pairs.
        """
        if not self._on_cpu:  # elsewhere the choice would stall the device
            return None
        largest = weight.abs().amax(0)
        some = (largest > torch.finfo(weight.dtype).eps ** 2 * largest.amax()).nonzero().squeeze(1)
        return some + tile.start if 2 * len(some) < weight.shape[1] else None

    def _variances_and_differences(self, tile: _Tile, columns: Tensor | None) -> tuple[Tensor, Tensor]:
        """v and Δ, (d_z, rows, columns) each, in buffers that the next call overwrites."""
        rows, others = tile.rows, tile.columns if columns is None else columns
        shape = (len(self._mu), tile.height, tile.end - tile.start if columns is None else len(columns))
        variance, difference = (buffer[: math.prod(shape)].view(shape) for buffer in self._buffers)
        torch.add(self._variance[:, rows, None], self._variance[:, others][:, None], out=variance)
        torch.sub(self._mu[:, rows, None], self._mu[:, others][:, None], out=difference)
        return variance, difference

    def _sum_of_logs(self, variance: Tensor) -> Tensor:
        """Σ log v over dimensions, one logarithm for as many of them as multiply without leaving the float's range.

        The variances are overwritten.
        """
        rest = []
        for _ in range(self._halvings):
            half = len(variance) // 2
            rest += [variance[-1]] if len(variance) % 2 else []
            variance = variance[:half].mul_(variance[half : 2 * half])
        total = variance.log_().sum(0)
        for single in rest:
            total += single.log_()
        return total

    def _safe_halvings(self) -> int:
        """How often the variances can be multiplied in pairs: every product of 2^n of them must be a normal number."""
        if not self._on_cpu:
            return 0
        widest = (2 * self._variance).log().abs().amax().item()
        room = 0.9 * -math.log(torch.finfo(self._variance.dtype).tiny) / max(widest, 1e-9)
        return max(0, min(3, int(math.log2(max(room, 1))), len(self._mu).bit_length() - 1))
