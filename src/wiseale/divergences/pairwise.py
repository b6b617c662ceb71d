"""Closed forms between pairs of posteriors, and the mean over all pairs of a batch that the aggregate bounds need."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from wiseale.divergences.streaming import log_sum_symmetric, streams
from wiseale.kernels import derivatives, pairs
from wiseale.method import facing, log_overlap
from wiseale.posterior import LOG_2PI, Posterior

PairwiseBound = Literal["jensen", "bhattacharyya"]
"""The upper bounds that are a mean over pairs."""

BLOCK_ENTRIES = 1 << 20  # numbers in one (d_z, rows, M) intermediate: 4 MB in float32


def bhattacharyya_distance(left: Posterior, right: Posterior) -> Tensor:
    """Bhattacharyya distance of every pair of posteriors: −log ∫ √(q_i(z) q_j(z)) dz.

    It is Σ_k [ ¼ (μ_ik − μ_jk)²/v_k + ½ log ½ v_k − ½ log σ_ik σ_jk ] with v_k = σ_ik² + σ_jk².

    Shape (len(left), len(right)), nats; 0 where both are equal.

    >>> q = Posterior(torch.tensor([[0.0], [2.0]]), torch.ones(2, 1))
    >>> bhattacharyya_distance(q, q)
    tensor([[0.0000, 0.5000],
            [0.5000, 0.0000]])
    """
    mu_i, mu_j = facing(left.mu, right.mu)
    sigma_i, sigma_j = facing(left.scale, right.scale)
    v = sigma_i.square() + sigma_j.square()
    log_sigmas = 0.5 * (left.scale.log().sum(-1)[:, None] + right.scale.log().sum(-1))
    return (0.25 * (mu_i - mu_j).square() / v + 0.5 * (0.5 * v).log()).sum(0) - log_sigmas


def kl_pairwise(left: Posterior, right: Posterior) -> Tensor:
    """KL divergence of every pair of posteriors: D_KL[q_i ‖ q_j].

    It is Σ_k [ ½ ((μ_ik − μ_jk)² + σ_ik²)/σ_jk² − ½ + log σ_jk/σ_ik ].

    Shape (len(left), len(right)), nats.

    >>> q = Posterior(torch.zeros(2, 1), torch.tensor([[1.0], [2.0]]))
    >>> kl_pairwise(q, q)
    tensor([[0.0000, 0.3181],
            [0.8069, 0.0000]])
    """
    mu_i, mu_j = facing(left.mu, right.mu)
    sigma_i, sigma_j = facing(left.scale, right.scale)
    log_ratio = right.scale.log().sum(-1) - left.scale.log().sum(-1)[:, None]
    squares = ((mu_i - mu_j).square() + sigma_i.square()) / sigma_j.square()
    return 0.5 * (squares.sum(0) - left.latent_dim) + log_ratio


@dataclass(frozen=True)
class PairKernel:
    """A symmetric log kernel of pairs: the readable formula, and the same as coefficients for the fast paths.

    formula(q, q)_ij = −Σ_c [ quadratic·Δ_c²/v_c + ½ log v_c ] + own·(Σ_c log σ_i + Σ_c log σ_j) + constant·d_z with
    Δ = μ_i − μ_j and v = σ_i² + σ_j².
    """

    formula: Callable[[Posterior, Posterior], Tensor]
    quadratic: float
    own: float
    constant: float


KERNELS: dict[PairwiseBound, PairKernel] = {
    "jensen": PairKernel(log_overlap, quadratic=0.5, own=0.0, constant=-0.5 * LOG_2PI),
    "bhattacharyya": PairKernel(
        lambda left, right: -bhattacharyya_distance(left, right), quadratic=0.25, own=0.5, constant=0.5 * math.log(2)
    ),
}
"""log ∫ q_i q_j dz, and log ∫ √(q_i q_j) dz."""


def log_mean_pairs(posterior: Posterior, kernel: PairKernel) -> Tensor:
    """log (1/M) Σ_j exp k(i, j) for every i, (M,), nats: by the fastest path for this size, type and device."""
    mu, sigma = posterior.mu, posterior.scale
    constant = kernel.constant * posterior.latent_dim - math.log(len(posterior))
    if streams(len(posterior) ** 2, mu, sigma):
        log_sums = log_sum_symmetric(posterior, kernel.quadratic, kernel.own)
        if log_sums is not None:
            return log_sums.add_(constant).to(mu.dtype)

    def formula(mu: Tensor, sigma: Tensor) -> Tensor:
        return log_mean_rows(Posterior(mu, sigma), kernel.formula)

    if pairs.takes(mu, sigma):
        return pairs.log_sum_pairs(mu, sigma, kernel.quadratic, kernel.own, constant, formula=formula)
    return formula(mu, sigma)


def log_mean_rows(posterior: Posterior, log_kernel: Callable[[Posterior, Posterior], Tensor]) -> Tensor:
    """log (1/M) Σ_j exp k(i, j) for every i, (M,), nats, from the formula itself in blocks of rows."""

    def rows(mu: Tensor, sigma: Tensor) -> Tensor:
        return log_kernel(Posterior(mu, sigma), posterior).logsumexp(1) - math.log(len(posterior))

    return in_blocks(rows, posterior, posterior.mu, posterior.scale)


def in_blocks(function: Callable[..., Tensor], posterior: Posterior, *rows: Tensor) -> Tensor:
    """Apply a function that compares rows with all posteriors to blocks of the rows.

    Several blocks are computed again in the backward pass: memory is O(block·M·d_z).
    """
    size = max(1, BLOCK_ENTRIES // max(1, posterior.mu.numel()))
    if len(rows[0]) <= size or derivatives.in_transform():
        return function(*rows)
    blocks = list(zip(*(torch.split(part, size) for part in rows), strict=True))
    if not torch.is_grad_enabled():  # a checkpoint would keep its block alive for a backward pass that never comes
        return torch.cat([function(*block) for block in blocks])
    return torch.cat([checkpoint(function, *block, use_reentrant=False) for block in blocks])
