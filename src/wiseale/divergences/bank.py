"""Aggregate KL of a bank: K recent posteriors, a batch's M among them, of which only the batch receives a gradient.

The mixture q(z|bank) approximates the aggregate posterior of the dataset, for which a batch alone is too small.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from wiseale.divergences.aggregate import upper_bound_from_log_means
from wiseale.divergences.pairwise import KERNELS, OVERLAP, PairwiseBound
from wiseale.divergences.tiled import ConstantColumns, log_sum_pairs
from wiseale.posterior import Posterior
from wiseale.priors import StandardNormal


def log_mean_bank(
    posterior: Posterior, bank: Posterior, places: Tensor, level: Tensor, estimator: PairwiseBound
) -> Tensor:
    """Log of each posterior's mean overlap with the bank, ℓ_n = log (1/K) Σ_j o_nj, with the bound's whole gradient.

    o is ∫ q_n q_j dz for ``"jensen"`` and ∫ √(q_n q_j) dz for ``"bhattacharyya"``. The bound is a mean of ℓ_j over the
    whole bank, on which q_n acts through its own ℓ_n and through o_jn in the ℓ_j of all others. Those are constants
    here, so the gradient of their part is added: that of (1/K) Σ_j exp(log o_nj − ℓ_j), whose value is 1 on average
    and does not enter the result. As ℓ_j includes o_jj/K, it is at most K·2^(d_z/2): in float32, d_z up to about 200.

    Args:
        posterior: the batch, (M, d_z).
        bank: all entries, (K, d_z), the batch's among them.
        places: which entries of the bank are the batch's, (M,).
        level: ℓ_j of every entry as last computed, (K,); those at ``places`` are replaced by the result.
        estimator: which of the two overlaps.

    Shape (M,), nats; differentiable once.

    >>> q = Posterior(torch.tensor([[-1.0], [1.0]]), torch.ones(2, 1))
    >>> log_mean_bank(q, q, torch.arange(2), torch.zeros(2), "jensen")  # a bank that is the batch
    tensor([-1.6454, -1.6454])
    """
    kernel, log_size = KERNELS[estimator], math.log(len(bank))
    constant = kernel.constant * bank.latent_dim
    columns = ConstantColumns(bank, level + (log_size - constant), places)
    return log_sum_pairs(posterior, kernel.quadratic, kernel.own, columns) + (constant - log_size)


def kl_bank_upper_bound(posterior: Posterior, log_means: Tensor, estimator: PairwiseBound) -> Tensor:
    """The batch's estimate of an upper bound on D_KL[q(z|bank) ‖ N(0, I)], from :func:`log_mean_bank`.

    It is that of :func:`kl_aggregate_upper_bound` with the bank's mean for the batch's: (1/M) Σ_n ℓ_n + ….

    Shape (), nats; with the whole gradient.

    >>> q = Posterior(torch.tensor([[-1.0], [1.0]]), torch.ones(2, 1))
    >>> kl_bank_upper_bound(q, log_mean_bank(q, q, torch.arange(2), torch.zeros(2), "jensen"), "jensen")
    tensor(0.2735)
    """
    return upper_bound_from_log_means(posterior, log_means, estimator)


def kl_bank_mc(z: Tensor, bank: Posterior) -> Tensor:
    """Monte Carlo estimate of D_KL[q(z|bank) ‖ N(0, I)] at one draw from each of the batch's entries, z (M, d_z).

    It is the mean of log q(z_n|bank) − log p(z_n). The gradient runs through z alone: through the parameters of the
    mixture its expectation is zero.

    Shape (), nats.

    >>> collapsed = Posterior(torch.zeros(4, 2), torch.ones(4, 2))
    >>> kl_bank_mc(torch.randn(3, 2), collapsed).abs() < 1e-5
    tensor(True)
    """
    points = Posterior(z, torch.zeros_like(z))  # q_j(z) is the overlap of q_j and a point
    log_sums = log_sum_pairs(points, OVERLAP.quadratic, OVERLAP.own, ConstantColumns(bank))
    log_q = log_sums + (OVERLAP.constant * bank.latent_dim - math.log(len(bank)))
    return (log_q - StandardNormal(bank.latent_dim).log_prob(z)).mean()
