"""Distances between posteriors and the prior, in nats: pure, differentiable functions of (mu, sigma).

The aggregate posterior q(z|B_M) is the equal-weight mixture of a batch's M posteriors. Its KL divergence from
p = N(0, I) has no closed form; it is bounded above and below by sums over pairs of posteriors, and estimated without
bias by Monte Carlo:

    max(0, kl_aggregate_lower_bound) ≤ KL = E[kl_aggregate_mc] ≤ kl_aggregate_upper_bound("tightest")

Squares are never expanded into products: in float32 that cancels. Pairs are taken a block of rows at a time and each
block is computed again in the backward pass, so memory is O(M·rows·d_z) and never O(M²·d_z).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from wiseale.divergences.pairwise import BHATTACHARYYA, OVERLAP, log_mean_pairs
from wiseale.divergences.streaming import log_sum_density, log_sum_kl, streams
from wiseale.posterior import LOG_2PI, Posterior
from wiseale.priors import StandardNormal

UpperBound = Literal["jensen", "bhattacharyya", "tightest"]
BankBound = Literal["jensen", "bhattacharyya"]
LogKernel = Callable[[Posterior, Posterior], Tensor]

_BLOCK_ENTRIES = 1 << 20  # numbers in one (d_z, rows, M) intermediate: 4 MB in float32


def kl_posterior_prior(posterior: Posterior) -> Tensor:
    """D_KL[q(z|x_i) ‖ N(0, I)] for each observation, nats, (M,): the AEVB term."""
    mu, sigma = posterior.mu, posterior.sigma
    return (0.5 * (mu.square() + sigma.square() - 1) - sigma.log()).sum(-1)


def cross_entropy_prior(posterior: Posterior) -> Tensor:
    """−E_{q(z|B)}[log p(z)], nats, (): the second sum of eq:KL-UB."""
    squares = posterior.mu.square() + posterior.sigma.square()
    return squares.sum() * (0.5 / len(posterior)) + 0.5 * posterior.latent_dim * LOG_2PI


def log_overlap(left: Posterior, right: Posterior) -> Tensor:
    """log ∫ q_i q_j dz for every pair, nats, (len(left), len(right)): log Π_k A^(−1/2)·B of eq:KL-UB."""
    variance, square = _pairs(left, right)
    return -0.5 * ((square / variance + variance.log()).sum(0) + left.latent_dim * LOG_2PI)


def bhattacharyya_distance(left: Posterior, right: Posterior) -> Tensor:
    """−log ∫ √(q_i q_j) dz for every pair, nats, (len(left), len(right))."""
    variance, square = _pairs(left, right)
    spread = 0.5 * (left.sigma.log().sum(-1)[:, None] + right.sigma.log().sum(-1))
    return (0.25 * square / variance + 0.5 * (0.5 * variance).log()).sum(0) - spread


def kl_pairwise(left: Posterior, right: Posterior) -> Tensor:
    """D_KL[q_i ‖ q_j] for every pair, nats, (len(left), len(right))."""
    mu_i, mu_j = _facing(left.mu, right.mu)
    sigma_i, sigma_j = _facing(left.sigma, right.sigma)
    log_ratio = right.sigma.log().sum(-1) - left.sigma.log().sum(-1)[:, None]
    squares = ((mu_i - mu_j).square() + sigma_i.square()) / sigma_j.square()
    return 0.5 * (squares.sum(0) - left.latent_dim) + log_ratio


def kl_aggregate_upper_bound(posterior: Posterior, estimator: UpperBound = "jensen") -> Tensor:
    """An analytic upper bound on D_KL[q(z|B_M) ‖ N(0, I)], nats, ().

    ``"jensen"`` is the paper's (eq:KL-UB); ``"bhattacharyya"`` the pairwise-distance bound of Kolchinsky & Tracey
    (2017), never above the mean AEVB KL; ``"tightest"`` the smaller of the two, as neither dominates.

    >>> q = Posterior(torch.tensor([[-1.0], [1.0]]), torch.ones(2, 1))
    >>> kl_aggregate_upper_bound(q)
    tensor(0.2735)
    """
    if estimator == "jensen":
        return log_mean_pairs(posterior, OVERLAP).mean() + cross_entropy_prior(posterior)
    if estimator == "bhattacharyya":
        entropy_gap = log_mean_pairs(posterior, BHATTACHARYYA).mean() - posterior.entropy().mean()
        return entropy_gap + cross_entropy_prior(posterior)
    if estimator == "tightest":
        return torch.minimum(
            kl_aggregate_upper_bound(posterior, "jensen"), kl_aggregate_upper_bound(posterior, "bhattacharyya")
        )
    raise ValueError(f"estimator must be 'jensen', 'bhattacharyya' or 'tightest', got {estimator!r}")


def kl_aggregate_lower_bound(posterior: Posterior) -> Tensor:
    """The pairwise-KL lower bound on D_KL[q(z|B_M) ‖ N(0, I)] (Kolchinsky & Tracey 2017), nats, (); may be negative."""
    entropy_gap = _log_mean_kl(posterior).mean() - posterior.entropy().mean()
    return entropy_gap + cross_entropy_prior(posterior)


def kl_aggregate_mc(
    posterior: Posterior, n: int = 1, generator: torch.Generator | None = None, z: Tensor | None = None
) -> Tensor:
    """Monte Carlo D_KL[q(z|B_M) ‖ N(0, I)] with n draws from each posterior, nats, (): unbiased.

    Give ``z`` (M, d_z), one reparameterised draw from each posterior, to use it in place of new draws. New draws stay
    exact where z itself has no room for a small sigma beside a large mu.
    """
    mu = posterior.mu
    prior = StandardNormal(posterior.latent_dim)
    values = []
    for _ in range(n if z is None else 1):
        centre, offset = (mu, posterior.sigma * _noise_like(mu, generator)) if z is None else (z, torch.zeros_like(z))
        log_q = _log_aggregate(posterior, centre, offset)
        values.append((log_q - prior.log_prob(centre + offset)).mean())
    return torch.stack(values).mean()


def log_aggregate(posterior: Posterior, z: Tensor) -> Tensor:
    """log q(z|B_M), the log density of the aggregate posterior at codes (K, d_z), nats, (K,)."""
    return _log_aggregate(posterior, z, torch.zeros_like(z))


def log_aggregate_marginals(posterior: Posterior, z: Tensor) -> Tensor:
    """log q(z_k|B_M), the log density of each marginal of the aggregate posterior at codes (K, d_z), nats, (K, d_z)."""

    def rows(z: Tensor, everyone: Posterior) -> Tensor:
        standardised = (z[:, None] - everyone.mu) / everyone.sigma
        log_q = -0.5 * (standardised.square() + LOG_2PI) - everyone.sigma.log()
        return log_q.logsumexp(1) - math.log(len(everyone))

    return _rowwise(rows, z, posterior)


def _log_aggregate(posterior: Posterior, centre: Tensor, offset: Tensor) -> Tensor:
    if streams(len(centre) * len(posterior), centre, offset, posterior.mu, posterior.sigma):
        return (log_sum_density(centre, offset, posterior) - math.log(len(posterior))).to(centre.dtype)
    return _rowwise(_log_mixture, torch.stack((centre, offset), 1), posterior)


def _log_mixture(rows: Tensor, posterior: Posterior) -> Tensor:
    """log q(z|B_M) at z = centre + offset, rows (K, 2, d_z): the centres' differences are taken first, without loss."""
    centre, offset = rows.unbind(1)
    at, mu = _facing(centre, posterior.mu)
    moved, sigma = _facing(offset, posterior.sigma)
    squares = ((at - mu + moved) / sigma).square().sum(0)
    log_q = -0.5 * (squares + posterior.latent_dim * LOG_2PI) - posterior.sigma.log().sum(-1)
    return log_q.logsumexp(-1) - math.log(len(posterior))


def _log_mean_kl(posterior: Posterior) -> Tensor:
    """log (1/M) Σ_j exp(−KL(q_i‖q_j)) for every i, (M,)."""
    if streams(len(posterior) ** 2, posterior.mu, posterior.sigma):
        return (log_sum_kl(posterior) - math.log(len(posterior))).to(posterior.mu.dtype)

    def rows(mu_sigma: Tensor, everyone: Posterior) -> Tensor:
        left = Posterior(*mu_sigma.unbind(1))
        return (-kl_pairwise(left, everyone)).logsumexp(-1) - math.log(len(everyone))

    return _rowwise(rows, torch.stack((posterior.mu, posterior.sigma), 1), posterior)


def _rowwise(function: Callable[[Tensor, Posterior], Tensor], rows: Tensor, posterior: Posterior) -> Tensor:
    """Apply a function of (rows, posterior) to blocks of rows; several blocks are recomputed in the backward pass."""
    size = max(1, _BLOCK_ENTRIES // max(1, posterior.mu.numel()))
    if len(rows) <= size:
        return function(rows, posterior)
    blocks = torch.split(rows, size)
    if not torch.is_grad_enabled():  # a checkpoint would keep its block alive for a backward pass that never comes
        return torch.cat([function(block, posterior) for block in blocks])
    return torch.cat([checkpoint(function, block, posterior, use_reentrant=False) for block in blocks])


def _pairs(left: Posterior, right: Posterior) -> tuple[Tensor, Tensor]:
    """v_ij,k = σ_ik² + σ_jk² and (μ_ik − μ_jk)², both (d_z, len(left), len(right))."""
    sigma_i, sigma_j = _facing(left.sigma, right.sigma)
    mu_i, mu_j = _facing(left.mu, right.mu)
    return sigma_i.square() + sigma_j.square(), (mu_i - mu_j).square()


def _facing(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """(d_z, L, 1) and (d_z, 1, R): the innermost axis is the long one, which is what makes these loops fast."""
    return left.mT.contiguous()[:, :, None], right.mT.contiguous()[:, None]


def _noise_like(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Standard normal noise, drawn in float32 whatever the dtype, so that every dtype sees the same draw."""
    device = generator.device if generator is not None else like.device
    return torch.randn(like.shape, generator=generator, device=device).to(like)


# A bank: K posteriors outside the graph, those of the batch among them, whose mixture stands for the dataset's. Only
# the batch's M rows have a gradient, in closed form, so that pairs are taken one dimension at a time: O(M·K) in memory.


def log_kernel_bank(left: Posterior, bank: Posterior, estimator: BankBound) -> Tensor:
    """log o of each posterior and each of the bank, (M, K), outside the graph: o = ∫ q_i q_j, or ∫ √(q_i q_j)."""
    left, quadratic = left.detach(), _QUADRATIC[estimator]
    log_kernel = left.mu.new_zeros(len(left), len(bank))
    for rows, _, variance, gap in _pairs_in_cache(left, bank):
        log_kernel[rows].sub_(gap.square_().div_(variance).mul_(quadratic)).sub_(variance.log_().mul_(0.5))
    if estimator == "jensen":
        return log_kernel.sub_(0.5 * LOG_2PI * left.latent_dim)
    spread = 0.5 * (left.sigma.log().sum(-1)[:, None] + bank.sigma.log().sum(-1))
    return log_kernel.add_(spread).add_(0.5 * math.log(2) * left.latent_dim)


def kl_bank_upper_bound(
    posterior: Posterior, bank: Posterior, log_kernel: Tensor, level: Tensor, estimator: BankBound
) -> Tensor:
    """The batch's estimate of an upper bound on D_KL[q(z|bank) ‖ N(0, I)], nats, (), with the whole gradient.

    The bound is (1/K) Σ_i log (1/K) Σ_j o_ij + …: a posterior acts through its own row and through its column, that is
    through the rows of all others. The bank's rows are outside the graph, so the column's part of the gradient is put
    back: with ``level`` = ℓ_j = log (1/K) Σ_m o_jm of every entry, (K,), it is that of (1/K) Σ_j exp(log o_nj − ℓ_j).
    That sum averages to 1 where ℓ is fresh; here it enters the gradient alone. As ℓ_j includes o_jj/K, it is at most
    K·2^(d_z/2): within float32 up to d_z of about 200.
    """
    row_and_column = log_kernel.softmax(-1) + (log_kernel - level).exp() / len(bank)
    gap = (log_kernel.logsumexp(-1) - math.log(len(bank))).mean()
    entropy = posterior.entropy().mean() if estimator == "bhattacharyya" else 0.0
    return _with_gradient(gap, posterior, bank, row_and_column, estimator) - entropy + cross_entropy_prior(posterior)


def kl_bank_mc(z: Tensor, bank: Posterior) -> Tensor:
    """Monte Carlo D_KL[q(z|bank) ‖ N(0, I)] at one draw from each of the batch's entries, (M, d_z), nats, ().

    The gradient runs through z alone: through the mixture's own parameters its expectation is zero.
    """
    points = Posterior(z, torch.zeros_like(z))  # a density is the overlap with a point
    log_kernel = log_kernel_bank(points, bank, "jensen")
    log_q = (log_kernel.logsumexp(-1) - math.log(len(bank))).mean()
    log_q = _with_gradient(log_q, points, bank, log_kernel.softmax(-1), "jensen")
    return log_q - StandardNormal(bank.latent_dim).log_prob(z).mean()


_CACHE_ENTRIES = 1 << 17  # numbers in one intermediate: a core's cache holds a few of them
_QUADRATIC: dict[BankBound, float] = {"jensen": 0.5, "bhattacharyya": 0.25}  # log o = −Σ_k quadratic·Δ²/v − …


def _with_gradient(value: Tensor, left: Posterior, bank: Posterior, weight: Tensor, estimator: BankBound) -> Tensor:
    """A value outside the graph, with the gradient mean_n Σ_j weight_nj ∇ log o_nj in the left mu and sigma."""
    own, quadratic = left.detach(), _QUADRATIC[estimator]
    along_mu, along_sigma = torch.empty_like(own.mu), torch.empty_like(own.mu)
    for rows, k, variance, gap in _pairs_in_cache(own, bank):
        slope = gap.div_(variance)
        weighted = weight[rows] * slope  # before it is squared: far pairs have no weight, and their square overflows
        along_mu[rows, k] = -2 * quadratic * weighted.sum(-1)
        curvature = 2 * quadratic * torch.linalg.vecdot(weighted, slope)
        along_sigma[rows, k] = own.sigma[rows, k] * (
            curvature - torch.linalg.vecdot(weight[rows], variance.reciprocal_())
        )
    if estimator == "bhattacharyya":
        along_sigma += 0.5 * weight.sum(-1, keepdim=True) / own.sigma
    first_order = along_mu * (left.mu - own.mu) + along_sigma * (left.sigma - own.sigma)
    return value + first_order.sum() / len(own)


def _pairs_in_cache(left: Posterior, right: Posterior) -> Iterator[tuple[slice, int, Tensor, Tensor]]:
    """For blocks of rows and each dimension k: v_ij = σ_i² + σ_j² and Δ_ij = μ_i − μ_j, (rows, K), to overwrite."""
    mu, square = right.mu.T.contiguous(), right.sigma.T.contiguous().square()
    size = max(1, _CACHE_ENTRIES // len(right))
    for start in range(0, len(left), size):
        rows = slice(start, start + size)
        for k in range(left.latent_dim):
            yield rows, k, left.sigma[rows, k, None].square() + square[k], left.mu[rows, k, None] - mu[k]
