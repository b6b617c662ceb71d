"""WiSE-ALE on one page: from the bound of the paper (eq:KL-UB) to a loss that trains.

An encoder turns a batch of M observations into M Gaussians q(z|x_i) = N(mu_i, diag sigma_i²). AEVB, the variational
auto-encoder, pulls each of them towards the prior p(z) = N(0, I). WiSE-ALE pulls only their average, the aggregate
posterior q(z|B_M) = (1/M) Σ_i q(z|x_i): together the codes fill the prior, and each keeps a place and a width of its
own.

    loss = (1/M) Σ_i −log p(x_i|z_i)  +  weight · D_KL[ q(z|B_M) ‖ p(z) ],   z_i ~ q(z|x_i)

The KL of a mixture has no closed form. It is E_q[log q(z|B_M)] − E_q[log p(z)], and the second term is a cross-entropy,
which does have one. In the first, the mean over z of each component moves inside the logarithm (Jensen's inequality):

    D_KL ≤ (1/M) Σ_i log (1/M) Σ_j ∫ q(z|x_i) q(z|x_j) dz  +  (1/2M) Σ_i Σ_k (σ_ik² + μ_ik² + log 2π)

What remains is the overlap of two Gaussians. With Δ = μ_i − μ_j and v = σ_i² + σ_j² in each dimension k,

    log ∫ q(z|x_i) q(z|x_j) dz = −½ Σ_k [ log 2π v_k + Δ_k²/v_k ]

The functions below are these three formulas and the loss; the bound of the objective ``wise_ale`` is computed with the
first three, where a batch is large with the same sums over pairs in C or in blocks (:mod:`wiseale.divergences`). A
linear auto-encoder, trained:

>>> import torch
>>> generator = torch.Generator().manual_seed(0)
>>> x = torch.randn(64, 2, generator=generator) @ torch.randn(2, 5, generator=generator)
>>> encoder, decoder = torch.zeros(5, 4), torch.zeros(2, 5)
>>> for weights in (encoder, decoder):
...     _ = weights.normal_(std=0.1, generator=generator).requires_grad_()
>>> optimiser, losses = torch.optim.Adam([encoder, decoder], lr=0.05), []
>>> for step in range(60):
...     mu, log_sigma = (x @ encoder).chunk(2, dim=1)
...     q = Posterior(mu, log_sigma.exp())
...     z = q.sample(torch.randn(64, 2, generator=generator))
...     log_likelihood = -0.5 * ((x - z @ decoder).square() + LOG_2PI).sum(1)
...     loss = wise_ale_loss(log_likelihood, kl_upper_bound(q, log_mean_overlap(q)), weight=1.0)
...     optimiser.zero_grad()
...     loss.backward()
...     optimiser.step()
...     losses.append(loss.item())
>>> losses[-1] < losses[0] - 1
True
"""

from __future__ import annotations

import math

from torch import Tensor

from wiseale.posterior import LOG_2PI, Posterior


def log_overlap(left: Posterior, right: Posterior) -> Tensor:
    """log ∫ q_i(z) q_j(z) dz for every pair of posteriors, (len(left), len(right)), nats.

    >>> import torch
    >>> q = Posterior(torch.tensor([[0.0], [2.0]]), torch.ones(2, 1))
    >>> log_overlap(q, q)
    tensor([[-1.2655, -2.2655],
            [-2.2655, -1.2655]])
    """
    mu_i, mu_j = facing(left.mu, right.mu)
    sigma_i, sigma_j = facing(left.scale, right.scale)
    v = sigma_i.square() + sigma_j.square()
    return -0.5 * (((mu_i - mu_j).square() / v + v.log()).sum(0) + left.latent_dim * LOG_2PI)


def log_mean_overlap(posterior: Posterior) -> Tensor:
    """log (1/M) Σ_j ∫ q_i(z) q_j(z) dz for every i, (M,), nats: the inner sum of eq:KL-UB."""
    return log_overlap(posterior, posterior).logsumexp(1) - math.log(len(posterior))


def cross_entropy_prior(posterior: Posterior) -> Tensor:
    """−E_{q(z|B_M)}[log p(z)] = (1/2M) Σ_i Σ_k (σ_ik² + μ_ik² + log 2π), (), nats: the second sum of eq:KL-UB.

    >>> import torch
    >>> cross_entropy_prior(Posterior(torch.zeros(4, 1), torch.ones(4, 1)))
    tensor(1.4189)
    """
    squares = posterior.mu.square() + posterior.scale.square()
    return squares.sum() * (0.5 / len(posterior)) + 0.5 * posterior.latent_dim * LOG_2PI


def kl_upper_bound(posterior: Posterior, log_means: Tensor) -> Tensor:
    """eq:KL-UB, the upper bound on D_KL[q(z|B_M) ‖ p(z)], from :func:`log_mean_overlap` (M,): (), nats."""
    return log_means.mean() + cross_entropy_prior(posterior)


def wise_ale_loss(log_likelihood: Tensor, kl: Tensor, weight: float) -> Tensor:
    """(1/M) Σ_i −log p(x_i|z_i) + weight · kl, (), nats per observation; the paper's L(B_M) has the weight 1/M."""
    return -log_likelihood.mean() + weight * kl


def facing(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """(L, d_z) and (R, d_z) as (d_z, L, 1) and (d_z, 1, R); the longest axis comes last, which is fastest."""
    return left.mT.contiguous()[:, :, None], right.mT.contiguous()[:, None]
