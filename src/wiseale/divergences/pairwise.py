"""Closed forms between pairs of posteriors, and the mean over all pairs of a batch that the aggregate bounds need.

The formulas here are what runs on small batches, under torch's own differentiation, and what the three fast paths are
tested against: C (:mod:`wiseale.kernels.pairs`), tiles with an analytic gradient (:mod:`wiseale.divergences.tiled`) and
streaming without a gradient (:mod:`wiseale.divergences.streaming`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from wiseale.divergences import tiled
from wiseale.divergences.streaming import log_sum_symmetric, streams
from wiseale.kernels import derivatives, pairs
from wiseale.posterior import LOG_2PI, Posterior, SharedRows

PairwiseBound = Literal["jensen", "bhattacharyya"]
"""The upper bounds that are a mean over pairs."""

_READABLE_ENTRIES = 1 << 15  # M²·d_z up to which the formula itself is as fast as tiles


def log_overlap(left: Posterior, right: Posterior) -> Tensor:
    """Log overlap of every pair of posteriors: log ∫ q_i(z) q_j(z) dz.

    It is −½ Σ_k [ log 2π v_k + (μ_ik − μ_jk)²/v_k ] with v_k = σ_ik² + σ_jk²: log Π_k A^(−1/2)·B of eq:KL-UB.

    Shape (len(left), len(right)), nats.

    >>> import torch
    >>> q = Posterior(torch.tensor([[0.0], [2.0]]), torch.ones(2, 1))
    >>> log_overlap(q, q)
    tensor([[-1.2655, -2.2655],
            [-2.2655, -1.2655]])
    """
    variance, square = _variances_and_squares(left, right)
    return -0.5 * ((square / variance + variance.log()).sum(0) + left.latent_dim * LOG_2PI)


def bhattacharyya_distance(left: Posterior, right: Posterior) -> Tensor:
    """Bhattacharyya distance of every pair of posteriors: −log ∫ √(q_i(z) q_j(z)) dz.

    It is Σ_k [ ¼ (μ_ik − μ_jk)²/v_k + ½ log ½ v_k − ½ log σ_ik σ_jk ] with v_k = σ_ik² + σ_jk².

    Shape (len(left), len(right)), nats; 0 where both are equal.

    >>> import torch
    >>> q = Posterior(torch.tensor([[0.0], [2.0]]), torch.ones(2, 1))
    >>> bhattacharyya_distance(q, q)
    tensor([[0.0000, 0.5000],
            [0.5000, 0.0000]])
    """
    variance, square = _variances_and_squares(left, right)
    log_sigmas = 0.5 * (left.sigma.log().sum(-1)[:, None] + right.sigma.log().sum(-1))
    return (0.25 * square / variance + 0.5 * (0.5 * variance).log()).sum(0) - log_sigmas


def kl_pairwise(left: Posterior, right: Posterior) -> Tensor:
    """KL divergence of every pair of posteriors: D_KL[q_i ‖ q_j].

    It is Σ_k [ ½ ((μ_ik − μ_jk)² + σ_ik²)/σ_jk² − ½ + log σ_jk/σ_ik ].

    Shape (len(left), len(right)), nats.

    >>> import torch
    >>> q = Posterior(torch.zeros(2, 1), torch.tensor([[1.0], [2.0]]))
    >>> kl_pairwise(q, q)
    tensor([[0.0000, 0.3181],
            [0.8069, 0.0000]])
    """
    mu_i, mu_j = facing(left.mu, right.mu)
    sigma_i, sigma_j = facing(left.sigma, right.sigma)
    log_ratio = right.sigma.log().sum(-1) - left.sigma.log().sum(-1)[:, None]
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


OVERLAP = PairKernel(log_overlap, quadratic=0.5, own=0.0, constant=-0.5 * LOG_2PI)
"""log ∫ q_i q_j dz, of the bound "jensen"."""

BHATTACHARYYA = PairKernel(
    lambda left, right: -bhattacharyya_distance(left, right), quadratic=0.25, own=0.5, constant=0.5 * math.log(2)
)
"""log ∫ √(q_i q_j) dz, of the bound "bhattacharyya"."""

KERNELS: dict[PairwiseBound, PairKernel] = {"jensen": OVERLAP, "bhattacharyya": BHATTACHARYYA}


def log_mean_pairs(posterior: Posterior, kernel: PairKernel, shared: SharedRows | None = None) -> Tensor:
    """log (1/M) Σ_j exp k(i, j) for every i, (M,), nats: by the fastest path for this size, type and device.

    With ``shared`` only the rows of this rank's part receive a gradient. Without a gradient nothing is shared.
    """
    m, d_z = posterior.mu.shape
    constant = kernel.constant * d_z - math.log(m)
    if streams(m**2, posterior.mu, posterior.sigma):
        log_sums = log_sum_symmetric(posterior, kernel.quadratic, kernel.own)
        if log_sums is not None:
            return log_sums.add_(constant).to(posterior.mu.dtype)

    def formula(q: Posterior) -> Tensor:
        return log_mean_readable(q, kernel)

    if pairs.takes(posterior.mu, posterior.sigma):
        both, coefficients = (posterior.mu, posterior.sigma), (kernel.quadratic, kernel.own, constant)
        return pairs.log_sum_pairs(*both, *coefficients, shared, formula=formula)
    if shared is None and (m**2 * d_z <= _READABLE_ENTRIES or derivatives.in_transform()):
        return formula(posterior)
    return tiled.log_sum_pairs(posterior, kernel.quadratic, kernel.own, shared=shared, formula=formula) + constant


def log_mean_readable(posterior: Posterior, kernel: PairKernel) -> Tensor:
    """log (1/M) Σ_j exp k(i, j) for every i, (M,), nats, from the formula itself: O(M²·d_z) in memory."""
    return kernel.formula(posterior, posterior).logsumexp(-1) - math.log(len(posterior))


def facing(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """(d_z, L, 1) and (d_z, 1, R): the innermost axis is the long one, which is what makes these loops fast."""
    return left.mT.contiguous()[:, :, None], right.mT.contiguous()[:, None]


def _variances_and_squares(left: Posterior, right: Posterior) -> tuple[Tensor, Tensor]:
    """v_ij,k = σ_ik² + σ_jk² and (μ_ik − μ_jk)², both (d_z, len(left), len(right))."""
    sigma_i, sigma_j = facing(left.sigma, right.sigma)
    mu_i, mu_j = facing(left.mu, right.mu)
    return sigma_i.square() + sigma_j.square(), (mu_i - mu_j).square()
