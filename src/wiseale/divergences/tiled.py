"""Sums over all pairs of posteriors in tiles, with an analytic gradient: large batches, and banks of any size.

Rows are the M posteriors that receive a gradient. Columns are the same posteriors (a batch) or K constant ones (a
bank); where ranks share a batch, rows are a rank's part of it and columns are the whole batch. A tile holds some rows
and their columns, laid out (d_z, rows, columns): the innermost loop runs over contiguous numbers, and a tile fits into
a core's cache. The backward pass computes the tiles again, so memory is O((M + K)·d_z + tile), plus M·K values of the
log kernel where they are few enough to be kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from wiseale.kernels import derivatives
from wiseale.posterior import Posterior, SharedRows

TILE_ENTRIES = 1 << 19  # numbers in a (d_z, rows, columns) tile: 2 MB in float32
KEPT_PAIRS = 1 << 22  # values of the log kernel kept for the backward pass: 16 MB in float32


@dataclass(frozen=True)
class ConstantColumns:
    """The K posteriors of a bank, the M rows among them.

    Attributes:
        posterior: the columns, (K, d_z).
        log_sums: log Σ_m exp k(j, m) of each column j, (K,), which adds the column's part to the gradient (see
            :func:`wiseale.divergences.bank.log_mean_bank`); None leaves that part out.
        places: which columns are the rows, (M,); their ``log_sums`` are replaced by those of the rows.
    """

    posterior: Posterior
    log_sums: Tensor | None = None
    places: Tensor | None = None


def log_sum_pairs(
    rows: Posterior,
    quadratic: float,
    own: float,
    columns: ConstantColumns | None = None,
    shared: SharedRows | None = None,
    *,
    formula: derivatives.Formula | None = None,
    tile_entries: int = TILE_ENTRIES,
    keep: int = KEPT_PAIRS,
) -> Tensor:
    """log Σ_j exp k(i, j) for every row i, (M,); without ``columns`` they are the rows.

    k(i, j) = −Σ_c [ quadratic·Δ_c²/v_c + ½ log v_c ] + own·(Σ_c log σ_i + Σ_c log σ_j) with Δ = μ_i − μ_j and
    v = σ_i² + σ_j². Up to ``keep`` values of k are stored for the backward pass; beyond, they are computed again.
    With ``shared`` (and no ``columns``) this rank computes the sums of its part of the rows and the gradient of these
    rows; the gradient of the others is 0. ``formula``, the same in torch (without ``columns`` and ``shared``), is for
    second derivatives.
    """
    formula = None if columns is not None or shared is not None else formula
    arguments = (rows.mu, rows.sigma, columns, shared, quadratic, own, formula, tile_entries, keep)
    log_sums: Tensor = _LogSumPairs.apply(*arguments)  # type: ignore[no-untyped-call]
    return log_sums


class _LogSumPairs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        mu: Tensor,
        sigma: Tensor,
        columns: ConstantColumns | None,
        shared: SharedRows | None,
        quadratic: float,
        own: float,
        formula: derivatives.Formula | None,
        tile_entries: int,
        keep: int,
    ) -> Tensor:
        batch, part = Posterior(mu, sigma), slice(None) if shared is None else shared.part
        facing_columns = batch if shared is not None else None if columns is None else columns.posterior
        pairs = _Pairs(batch[part], facing_columns, quadratic, own, tile_entries)
        log_sums = mu.new_full((len(mu[part]),), -math.inf)
        kept = []
        for tile in pairs.tiles():
            log_k = pairs.log_kernel(tile)
            log_sums[tile.rows] = torch.logaddexp(log_sums[tile.rows], _log_sum_exp(log_k, 1))
            if tile.mirrors:
                mirrored = _log_sum_exp(log_k[:, tile.height :], 0)
                log_sums[tile.mirrored] = torch.logaddexp(log_sums[tile.mirrored], mirrored)
            if len(log_sums) * pairs.width <= keep:
                kept.append(log_k)
        if shared is not None:
            log_sums = shared.gather(log_sums)
        column_log_sums = log_sums if columns is None else columns.log_sums
        if columns is not None and column_log_sums is not None and columns.places is not None:
            column_log_sums = column_log_sums.index_copy(0, columns.places, log_sums)
        ctx.pairs, ctx.part, ctx.constant_columns, ctx.formula = pairs, part, columns is not None, formula
        ctx.save_for_backward(mu, sigma, log_sums, column_log_sums, *kept)
        return log_sums

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        mu, sigma, log_sums, column_log_sums, *kept = ctx.saved_tensors
        if derivatives.is_wanted():
            return *derivatives.of_formula(ctx.formula, mu, sigma, grad), *[None] * 7
        pairs: _Pairs = ctx.pairs
        of_batch, size = grad, len(grad)
        grad, log_sums = grad[ctx.part], log_sums[ctx.part]
        grad_mu, grad_sigma = torch.zeros_like(pairs.sigma), torch.zeros_like(pairs.sigma)
        weight_sums = torch.zeros_like(grad)
        for index, tile in enumerate(pairs.tiles()):
            log_k = kept[index] if kept else pairs.log_kernel(tile)
            # d(Σ_i grad_i log_sums_i)/dk(i, j): through the sum of row i, and through that of row j, as k is symmetric.
            weight = pairs.weight(log_k - log_sums[tile.rows, None]).mul_(grad[tile.rows, None])
            if column_log_sums is not None:
                of_column = grad[tile.rows, None] if ctx.constant_columns else of_batch[tile.columns]
                weight.add_(pairs.weight(log_k - column_log_sums[tile.columns]).mul_(of_column))
            if pairs.own:
                weight_sums[tile.rows] += weight.sum(1)
                if tile.mirrors:
                    weight_sums[tile.mirrored] += weight[:, tile.height :].sum(0)
            some = pairs.columns_that_matter(tile, weight)
            if some is not None:
                weight = weight[:, some - tile.first]
            by_mu, by_sigma = pairs.weighted_slopes(tile, some, weight)
            grad_mu[:, tile.rows] -= by_mu.sum(2)
            grad_sigma[:, tile.rows] += by_sigma.sum(2)
            if tile.mirrors:
                inside = tile.height if some is None else int((some < tile.stop).sum())
                mirrored = tile.mirrored if some is None else some[inside:]
                grad_mu[:, mirrored] += by_mu[:, :, inside:].sum(1)
                grad_sigma[:, mirrored] += by_sigma[:, :, inside:].sum(1)
        grad_sigma.mul_(-pairs.sigma)
        if pairs.own:
            grad_sigma += pairs.own * weight_sums / pairs.sigma
        gradients = [grad_mu.mul_(2 * pairs.quadratic).mT, grad_sigma.mT]
        if len(grad) < size:
            gradients = [_embedded(rows, ctx.part, size) for rows in gradients]
        return *gradients, *[None] * 7


@dataclass(frozen=True)
class _Tile:
    """Rows ``start`` to ``stop`` and columns ``first`` to ``last``.

    In a batch a tile begins at the diagonal (``first == start``), and its columns from ``stop`` on stand for the tile
    below the diagonal, too: they are mirrored.
    """

    start: int
    stop: int
    first: int
    last: int
    mirrors: bool

    @property
    def rows(self) -> slice:
        return slice(self.start, self.stop)

    @property
    def columns(self) -> slice:
        return slice(self.first, self.last)

    @property
    def mirrored(self) -> slice:
        return slice(self.stop, self.last)

    @property
    def height(self) -> int:
        return self.stop - self.start


class _Pairs:
    """The log kernel and its derivatives, tile by tile; parameters are stored (d_z, M) and (d_z, K)."""

    def __init__(
        self, rows: Posterior, columns: Posterior | None, quadratic: float, own: float, tile_entries: int
    ) -> None:
        self.symmetric, self.quadratic, self.own = columns is None, quadratic, own
        self._mu, self.sigma, self._variance, self._log_own = _parameters(rows, own)
        self._columns = self._mu, self._variance, self._log_own
        if columns is not None:
            mu, _, variance, log_own = _parameters(columns, own)
            self._columns = mu, variance, log_own
        self.width = self._columns[0].shape[1]
        self._tile_entries = max(tile_entries, len(self._mu) * self.width)
        self._on_cpu = rows.mu.device.type == "cpu"
        # Allocated once for all tiles: memory fresh from the system is slow.
        entries = min(self._tile_entries, self._mu.numel() * self.width)
        self._buffers = [self._mu.new_empty(entries) for _ in range(2)]
        smallest, largest, farthest = self._limits()
        self._halvings = self._safe_halvings(smallest, largest)
        # Whether some |Δ|/v is so large that its square times e^−70 would count, or overflow.
        self._steep = not farthest < 1e9 * smallest

    def tiles(self) -> Iterator[_Tile]:
        """Tiles that cover all pairs; in a batch those on and above the diagonal, which is half of them."""
        (d_z, m), start = self._mu.shape, 0
        while start < m:
            first = start if self.symmetric else 0
            stop = min(m, start + self._tile_entries // (d_z * (self.width - first)))
            yield _Tile(start, stop, first, self.width, mirrors=self.symmetric and stop < m)
            start = stop

    def log_kernel(self, tile: _Tile) -> Tensor:
        """k, (rows, columns)."""
        variance, difference = self._variances_and_differences(tile, None)
        log_k = difference.square_().div_(variance).sum(0).mul_(-self.quadratic)
        log_k.add_(self._sum_of_logs(variance), alpha=-0.5)
        if self.own:
            log_k += self._log_own[tile.rows, None]
            log_k += self._columns[2][tile.columns]
        return log_k

    def weight(self, log_weight: Tensor) -> Tensor:
        """exp in place, with exponents raised to at least −70: exp is slow where its result is denormal."""
        weight = log_weight.clamp_min_(-70).exp_()
        return torch.threshold_(weight, 1e-30, 0.0) if self._steep else weight

    def weighted_slopes(self, tile: _Tile, columns: Tensor | None, weight: Tensor) -> tuple[Tensor, Tensor]:
        """w·Δ/v and w·(1/v − 2·quadratic·Δ²/v²), each (d_z, rows, columns): w·∂k/∂μ and w·∂k/∂σ but for factors."""
        variance, difference = self._variances_and_differences(tile, columns)
        inverse = variance.reciprocal_()
        slope = difference.mul_(inverse)
        if self._steep:  # pairs so far apart have weight 0, and 0·Δ²/v² must not become 0·inf
            slope.clamp_(-1e18, 1e18)
        by_sigma = inverse.addcmul_(slope, slope, value=-2 * self.quadratic).mul_(weight)
        return slope.mul_(weight), by_sigma

    def columns_that_matter(self, tile: _Tile, weight: Tensor) -> Tensor | None:
        """The columns of a tile with any weight worth adding, where they are fewer than half; None: take all.

        Posteriors that do not overlap have no gradient between them: in many dimensions, that is most pairs.
        """
        if not self._on_cpu:  # elsewhere the choice would stall the device
            return None
        largest = weight.abs().amax(0)
        negligible = largest <= torch.finfo(weight.dtype).eps ** 2 * largest.amax()  # False for NaN: it must propagate
        some = negligible.logical_not_().nonzero().squeeze(1)
        return some + tile.first if 2 * len(some) < weight.shape[1] else None

    def _variances_and_differences(self, tile: _Tile, columns: Tensor | None) -> tuple[Tensor, Tensor]:
        """v and Δ, (d_z, rows, columns) each, in buffers that the next call overwrites."""
        chosen = tile.columns if columns is None else columns
        shape = (len(self._mu), tile.height, tile.last - tile.first if columns is None else len(columns))
        variance, difference = (buffer[: math.prod(shape)].view(shape) for buffer in self._buffers)
        column_mu, column_variance, _ = self._columns
        torch.add(self._variance[:, tile.rows, None], column_variance[:, chosen][:, None], out=variance)
        torch.sub(self._mu[:, tile.rows, None], column_mu[:, chosen][:, None], out=difference)
        return variance, difference

    def _sum_of_logs(self, variance: Tensor) -> Tensor:
        """Σ_c log v_c, one logarithm for the product of 2^halvings dimensions; v is overwritten."""
        rest = []
        for _ in range(self._halvings):
            half = len(variance) // 2
            rest += [variance[-1]] if len(variance) % 2 else []
            variance = variance[:half].mul_(variance[half : 2 * half])
        total = variance.log_().sum(0)
        for single in rest:
            total += single.log_()
        return total

    def _limits(self) -> tuple[float, float, float]:
        """Smallest and largest v and largest |Δ| that any pair can have; unknown is NaN, to not stall a device."""
        if not self._on_cpu:
            return math.nan, math.nan, math.nan
        column_mu, column_variance, _ = self._columns
        smallest, largest = (sum(both) for both in zip(_range(self._variance), _range(column_variance), strict=True))
        (low, high), (column_low, column_high) = _range(self._mu), _range(column_mu)
        return smallest, largest, max(high - column_low, column_high - low)

    def _safe_halvings(self, smallest: float, largest: float) -> int:
        """How often variances can be multiplied in pairs such that every product of 2^n of them is a normal number."""
        if not 0 < smallest <= largest < math.inf:
            return 0
        widest = max(abs(math.log(smallest)), abs(math.log(largest)), 1e-9)
        room = 0.9 * -math.log(torch.finfo(self._variance.dtype).tiny) / widest
        return min(3, int(math.log2(max(room, 1))), len(self._mu).bit_length() - 1)


def _range(x: Tensor) -> tuple[float, float]:
    low, high = x.aminmax()
    return low.item(), high.item()


def _parameters(posterior: Posterior, own: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """μ, σ and σ², (d_z, M) each, and own·Σ_c log σ, (M,)."""
    mu, sigma = (part.detach().mT.contiguous() for part in (posterior.mu, posterior.sigma))
    return mu, sigma, sigma.square(), sigma.log().sum(0).mul_(own) if own else mu.new_empty(0)


def _embedded(rows: Tensor, part: slice, size: int) -> Tensor:
    """The rows at their places among ``size`` rows, which are 0 elsewhere."""
    everywhere = rows.new_zeros(size, rows.shape[1])
    everywhere[part] = rows
    return everywhere


def _log_sum_exp(log_k: Tensor, axis: int) -> Tensor:
    """As torch.logsumexp, but several times faster where pairs are far apart: terms below e^−70 are raised to it."""
    peak = log_k.amax(axis, keepdim=True).clamp_min_(torch.finfo(log_k.dtype).min)  # −inf − (−inf) is NaN
    return (log_k - peak).clamp_min_(-70).exp_().sum(axis).log_().add_(peak.squeeze(axis))
