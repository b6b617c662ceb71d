"""Divergences between posteriors and the prior p = N(0, I), in nats: pure, differentiable functions of (mu, sigma).

The aggregate posterior q(z|B_M) is the equal-weight mixture of a batch's M posteriors. Its KL divergence from p has no
closed form; it is bounded above and below by means over pairs of posteriors, and estimated without bias by Monte Carlo:

    max(0, kl_aggregate_lower_bound) ≤ KL = E[kl_aggregate_mc] ≤ kl_aggregate_upper_bound("tightest")

Where to read: :mod:`wiseale.method` derives the paper's bound; :mod:`~wiseale.divergences.aggregate` has the
divergences from the prior, :mod:`~wiseale.divergences.pairwise` the closed forms between two posteriors,
:mod:`~wiseale.divergences.samples` distances between samples of codes (MMD, Sinkhorn). The mean over pairs also exists
in two faster forms: in C with its gradient (:mod:`wiseale.kernels.pairs`), and for evaluation without a gradient
(:mod:`~wiseale.divergences.streaming`). Both are tested against the closed forms. No form expands squares of
differences into products, which cancels in float32, nor needs memory O(M²·d_z) for large M.
"""

from wiseale.divergences.aggregate import (
    UpperBound,
    kl_aggregate_lower_bound,
    kl_aggregate_mc,
    kl_aggregate_upper_bound,
    kl_posterior_prior,
    log_aggregate,
    log_aggregate_marginals,
)
from wiseale.divergences.pairwise import PairwiseBound, bhattacharyya_distance, kl_pairwise
from wiseale.method import cross_entropy_prior, log_overlap

__all__ = [
    "PairwiseBound",
    "UpperBound",
    "bhattacharyya_distance",
    "cross_entropy_prior",
    "kl_aggregate_lower_bound",
    "kl_aggregate_mc",
    "kl_aggregate_upper_bound",
    "kl_pairwise",
    "kl_posterior_prior",
    "log_aggregate",
    "log_aggregate_marginals",
    "log_overlap",
]
