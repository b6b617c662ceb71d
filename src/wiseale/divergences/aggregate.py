"""Divergences from the prior N(0, I): of each posterior, and of the aggregate posterior of a batch."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from wiseale.divergences.pairwise import KERNELS, PairwiseBound, in_blocks, kl_pairwise, log_mean_pairs, log_mean_rows
from wiseale.divergences.streaming import log_sum_density, log_sum_kl, streams
from wiseale.method import cross_entropy_prior, facing, kl_upper_bound
from wiseale.posterior import LOG_2PI, Posterior
from wiseale.priors import StandardNormal

UpperBound = Literal["jensen", "bhattacharyya", "tightest"]


def kl_posterior_prior(posterior: Posterior) -> Tensor:
    """KL divergence of each posterior from the prior, D_KL[q(z|x_i) ‖ N(0, I)]: the term of AEVB.

    It is Σ_k [ ½ (μ_ik² + σ_ik² − 1) − log σ_ik ].

    Shape (M,), nats: summed over dimensions, not averaged over the batch.

    >>> kl_posterior_prior(Posterior(torch.tensor([[0.0], [1.0]]), torch.ones(2, 1)))
    tensor([0.0000, 0.5000])
    """
    mu, sigma = posterior.mu, posterior.scale
    return (0.5 * (mu.square() + sigma.square() - 1) - sigma.log()).sum(-1)


def kl_aggregate_upper_bound(posterior: Posterior, estimator: UpperBound = "jensen") -> Tensor:
    """An analytic upper bound on D_KL[q(z|B_M) ‖ N(0, I)].

    ``"jensen"`` is the paper's (eq:KL-UB), (1/M) Σ_i log (1/M) Σ_j ∫ q_i q_j dz + :func:`cross_entropy_prior`.
    ``"bhattacharyya"`` has √(q_i q_j) for q_i q_j and subtracts the mean entropy of the q_i (Kolchinsky & Tracey 2017);
    it is never above the mean of :func:`kl_posterior_prior`. ``"tightest"`` is the smaller of the two, as neither
    dominates.

    Shape (), nats.

    >>> q = Posterior(torch.tensor([[-1.0], [1.0]]), torch.ones(2, 1))
    >>> kl_aggregate_upper_bound(q), kl_aggregate_upper_bound(q, "bhattacharyya")
    (tensor(0.2735), tensor(0.2809))
    """
    if estimator == "tightest":
        bounds: tuple[PairwiseBound, ...] = ("jensen", "bhattacharyya")
        return torch.minimum(*(kl_aggregate_upper_bound(posterior, bound) for bound in bounds))
    if estimator not in KERNELS:
        raise ValueError(f"estimator must be 'jensen', 'bhattacharyya' or 'tightest', got {estimator!r}")
    log_means = log_mean_pairs(posterior, KERNELS[estimator])
    if estimator == "jensen":
        return kl_upper_bound(posterior, log_means)
    return log_means.mean() - posterior.entropy().mean() + cross_entropy_prior(posterior)


def kl_aggregate_lower_bound(posterior: Posterior) -> Tensor:
    """The pairwise-KL lower bound on D_KL[q(z|B_M) ‖ N(0, I)] (Kolchinsky & Tracey 2017).

    It is (1/M) Σ_i log (1/M) Σ_j exp(−D_KL[q_i ‖ q_j]) − (1/M) Σ_i H[q_i] + :func:`cross_entropy_prior`.

    Shape (), nats; may be negative.

    >>> kl_aggregate_lower_bound(Posterior(torch.tensor([[-1.0], [1.0]]), torch.ones(2, 1)))
    tensor(-0.0662)
    """
    return _log_mean_kl(posterior).mean() - posterior.entropy().mean() + cross_entropy_prior(posterior)


def kl_aggregate_mc(
    posterior: Posterior, n: int = 1, generator: torch.Generator | None = None, z: Tensor | None = None
) -> Tensor:
    """Monte Carlo estimate of D_KL[q(z|B_M) ‖ N(0, I)] with n draws from each posterior: unbiased.

    It is the mean of log q(z_i|B_M) − log p(z_i) over z_i = μ_i + σ_i·ε. Give ``z`` (M, d_z), one reparameterised draw
    from each posterior, to use it in place of new draws. New draws keep μ_i and σ_i·ε apart, which stays exact where
    their sum would round a small σ_i away.

    Shape (), nats.

    >>> collapsed = Posterior(torch.zeros(4, 2), torch.ones(4, 2))
    >>> kl_aggregate_mc(collapsed, z=torch.randn(4, 2)).abs() < 1e-5
    tensor(True)
    """
    if n < 1 or (z is not None and n != 1):
        raise ValueError(f"n must be at least 1, and 1 where z is given, got {n}")
    mu, prior = posterior.mu, StandardNormal(posterior.latent_dim)
    device = mu.device if generator is None else generator.device
    values = []
    for _ in range(n):
        if z is None:  # noise in float32 whatever the dtype, so that every dtype sees the same draw
            noise = torch.randn(mu.shape, generator=generator, device=device).to(mu)
            centre, offset = mu, posterior.scale * noise
        else:
            centre, offset = z, torch.zeros_like(z)
        log_q = _log_aggregate(posterior, centre, offset)
        values.append((log_q - prior.log_prob(centre + offset)).mean())
    return torch.stack(values).mean()


def log_aggregate(posterior: Posterior, z: Tensor) -> Tensor:
    """Log density of the aggregate posterior at codes z (K, d_z): log q(z|B_M) = log (1/M) Σ_j q(z|x_j), eq:q(z|D).

    Shape (K,), nats.

    >>> log_aggregate(Posterior(torch.tensor([[-1.0], [1.0]]), torch.ones(2, 1)), torch.zeros(1, 1))
    tensor([-1.4189])
    """
    return _log_aggregate(posterior, z, torch.zeros_like(z))


def log_aggregate_marginals(posterior: Posterior, z: Tensor) -> Tensor:
    """Log density of each marginal of the aggregate posterior at codes z (K, d_z): log (1/M) Σ_j q(z_k|x_j).

    Shape (K, d_z), nats.

    >>> log_aggregate_marginals(Posterior(torch.zeros(3, 2), torch.ones(3, 2)), torch.tensor([[0.0, 1.0]]))
    tensor([[-0.9189, -1.4189]])
    """

    def rows(z: Tensor) -> Tensor:
        standardised = (z[:, None] - posterior.mu) / posterior.scale
        log_q = -0.5 * (standardised.square() + LOG_2PI) - posterior.scale.log()
        return log_q.logsumexp(1) - math.log(len(posterior))

    return in_blocks(rows, posterior, z)


def _log_aggregate(posterior: Posterior, centre: Tensor, offset: Tensor) -> Tensor:
    """log q(z|B_M) at z = centre + offset, (K,); centre − μ is taken first, as it loses no digits."""
    if streams(len(centre) * len(posterior), centre, offset, posterior.mu, posterior.scale):
        return (log_sum_density(centre, offset, posterior) - math.log(len(posterior))).to(centre.dtype)

    def rows(centre: Tensor, offset: Tensor) -> Tensor:
        at, mu = facing(centre, posterior.mu)
        shift, sigma = facing(offset, posterior.scale)
        squares = ((at - mu + shift) / sigma).square().sum(0)
        log_q = -0.5 * (squares + posterior.latent_dim * LOG_2PI) - posterior.scale.log().sum(-1)
        return log_q.logsumexp(-1) - math.log(len(posterior))

    return in_blocks(rows, posterior, centre, offset)


def _log_mean_kl(posterior: Posterior) -> Tensor:
    """log (1/M) Σ_j exp(−D_KL[q_i ‖ q_j]) for every i, (M,)."""
    if streams(len(posterior) ** 2, posterior.mu, posterior.scale):
        return (log_sum_kl(posterior) - math.log(len(posterior))).to(posterior.mu.dtype)
    return log_mean_rows(posterior, lambda left, right: -kl_pairwise(left, right))
