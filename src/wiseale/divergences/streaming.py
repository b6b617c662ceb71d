"""Sums over all pairs of many posteriors without a gradient: for evaluation, with tens of thousands of posteriors.

Everything is computed in float64, whatever the inputs' type, in place on tiles that stay in the processor's cache;
torch divides each tile among its threads. Differences of means are taken before they are squared, never as a matrix
product of expanded squares, which would cancel where sigma is small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from wiseale.posterior import LOG_2PI, Posterior

LEAST_PAIRS = 1 << 20  # fewer pairs are fast on every path
TILE = (256, 1024)  # rows and columns: 2 MB
_WIDEST = 300.0  # nats: exp of ±2·300 is still a float64


def streams(pairs: int, *tensors: Tensor) -> bool:
    """Whether sums over this many pairs are computed here: at least LEAST_PAIRS, on the CPU, without a gradient."""
    if pairs < LEAST_PAIRS or (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)):
        return False
    return all(tensor.device.type == "cpu" for tensor in tensors)


@torch.no_grad()
def log_sum_symmetric(
    posterior: Posterior, quadratic: float, own: float, tile: tuple[int, int] = TILE
) -> Tensor | None:
    """log Σ_j exp k(i, j) for every i, float64 (M,); None where sigma varies so much that exp k leaves float64.

    k(i, j) = −Σ_c [ quadratic·Δ_c²/v_c + ½ log v_c ] + own·(Σ_c log σ_i + Σ_c log σ_j) with v = σ_i² + σ_j². In units
    of each dimension's geometric mean of σ (times √2, so that v is about 1), exp k itself can be summed: k(i, i) is in
    range, and no k(i, j) exceeds it by more than ½·d_z·log 2. As k(i, j) = k(j, i), a tile off the diagonal serves both
    ways.
    """
    log_width = posterior.scale.double().log()
    log_unit = log_width.mean(0)
    log_width -= log_unit
    if not bool(log_width.abs().amax(0).sum() <= _WIDEST):
        return None
    mu = (posterior.mu.double() * (math.sqrt(0.5 * quadratic) / log_unit.exp())).mT.contiguous()
    variance = (2 * log_width).exp().mul_(0.5).mT.contiguous()
    log_own = own * log_width.sum(1)
    weight = log_own.exp()
    sums = torch.zeros_like(weight)
    buffers = _buffers(5, tile)
    for rows, columns in _tiles(len(weight), len(weight), tile, symmetric=True):
        total, product, v, gap, ratio = (_view(buffer, rows, columns) for buffer in buffers)
        for c, (mu_c, variance_c) in enumerate(zip(mu, variance, strict=True)):
            torch.add(variance_c[rows, None], variance_c[columns], out=v if c else product)
            torch.sub(mu_c[rows, None], mu_c[columns], out=gap)
            torch.div(gap, v if c else product, out=ratio)
            if c:
                product.mul_(v)
                total.addcmul_(gap, ratio, value=-1)
            else:
                torch.mul(gap, ratio, out=total).neg_()
        kernel = _exp(total).mul_(product.rsqrt_())
        sums[rows].addmv_(kernel, weight[columns])
        if rows.stop <= columns.start:
            sums[columns].addmv_(kernel.mT, weight[rows])
    return sums.log_().add_(log_own).sub_((1 - 2 * own) * log_unit.sum() + 0.5 * len(mu) * math.log(2))


@torch.no_grad()
def log_sum_kl(posterior: Posterior, tile: tuple[int, int] = TILE) -> Tensor:
    """log Σ_j exp(−KL(q_i‖q_j)) for every i, float64 (M,)."""
    mu, sigma = (part.double().mT.contiguous() for part in (posterior.mu, posterior.scale))
    half_precision, variance = 0.5 * sigma.pow(-2), sigma.square()
    log_width = sigma.log().sum(0)
    own = log_width + 0.5 * len(mu)
    sums = torch.zeros_like(own)
    buffers = _buffers(2, tile)
    for rows, columns in _tiles(len(own), len(own), tile):
        total, gap = (_view(buffer, rows, columns) for buffer in buffers)
        torch.sub(own[rows, None], log_width[columns], out=total)
        for c in range(len(mu)):
            torch.sub(mu[c, rows, None], mu[c, columns], out=gap)
            gap.square_().add_(variance[c, rows, None])
            total.addcmul_(gap, half_precision[c, columns], value=-1)
        sums[rows] += _exp(total).sum(1)  # between 1, from j = i, and M
    return sums.log_()


@torch.no_grad()
def log_sum_density(centre: Tensor, offset: Tensor, posterior: Posterior, tile: tuple[int, int] = TILE) -> Tensor:
    """log Σ_j q_j(z) at z = centre + offset, both (K, d_z), float64 (K,).

    centre − μ is taken first, as it loses no digits.
    """
    mu, sigma, at, shift = (part.double().mT.contiguous() for part in (posterior.mu, posterior.scale, centre, offset))
    precision = math.sqrt(0.5) / sigma
    constant = -sigma.log().sum(0) - 0.5 * len(mu) * LOG_2PI
    sums = at.new_full(at.shape[1:], -math.inf)
    still = not bool(shift.any())
    buffers = _buffers(2, tile)
    for rows, columns in _tiles(len(sums), len(posterior), tile):
        total, gap = (_view(buffer, rows, columns) for buffer in buffers)
        total.copy_(constant[columns].expand_as(total))
        for c in range(len(mu)):
            torch.sub(at[c, rows, None], mu[c, columns], out=gap)
            if not still:
                gap.add_(shift[c, rows, None])
            gap.mul_(precision[c, columns])
            total.addcmul_(gap, gap, value=-1)
        peak = total.amax(1)
        log_sum = _exp(total.sub_(peak[:, None])).sum(1).log_().add_(peak)
        sums[rows] = torch.logaddexp(sums[rows], log_sum)
    return sums


def _exp(x: Tensor) -> Tensor:
    """exp in place, with exponents raised to at least −700: arithmetic with denormal numbers is slow."""
    return x.clamp_min_(-700).exp_()


def _tiles(m: int, n: int, tile: tuple[int, int], symmetric: bool = False) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of tiles over all m·n pairs; where symmetric, of the tiles on and above the diagonal."""
    height, width = tile
    for left in range(0, n, width):
        columns = slice(left, min(left + width, n))
        bottom = columns.stop if symmetric else m
        for top in range(0, bottom, height):
            yield slice(top, min(top + height, bottom)), columns


def _buffers(count: int, tile: tuple[int, int]) -> list[Tensor]:
    return [torch.empty(math.prod(tile), dtype=torch.float64) for _ in range(count)]


def _view(buffer: Tensor, rows: slice, columns: slice) -> Tensor:
    height, width = rows.stop - rows.start, columns.stop - columns.start
    return buffer[: height * width].view(height, width)
