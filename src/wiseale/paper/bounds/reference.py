"""Reference values of the aggregate KL: quadrature in one and two dimensions, many Monte Carlo draws in more."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from wiseale.divergences import cross_entropy_prior, kl_posterior_prior, log_aggregate
from wiseale.posterior import Posterior
from wiseale.priors import StandardNormal

QUADRATURE_DIMENSIONS = 2

_REACH = 9.0  # standard deviations on either side of a mean; the mass beyond is 1e-19
_POINTS_PER_SIGMA = {1: 8, 2: 4}  # by dimension, sigma of the narrowest posterior: errors of about 1e-12 and 1e-8 nats
_BLOCK_POINTS = 1 << 21


@dataclass(frozen=True)
class Reference:
    """The reference value of one aggregate KL, and standard errors of Monte Carlo estimates of it, nats.

    Attributes:
        kl: D_KL[q(z|B_M) ‖ N(0, I)].
        standard_error: of ``kl``; 0 where it comes from quadrature.
        mc_standard_error: of ``kl_aggregate_mc`` with one draw from each posterior.
        controlled_standard_error: the same with the control variate of ``reference``.
    """

    kl: float
    standard_error: float
    mc_standard_error: float
    controlled_standard_error: float


def reference(posterior: Posterior, draws: int, generator: torch.Generator) -> Reference:
    """The aggregate KL of float64 posteriors: by quadrature if d_z ≤ 2, else from ``draws`` codes per posterior.

    log q(z|B) − log p(z) is averaged over the draws with the control variate log q_i(z) − log p(z) − KL(q_i ‖ p), which
    has mean zero and removes all variance where posteriors do not overlap. Sampling is stratified by posterior: only
    the variance within each counts.
    """
    m = len(posterior)
    repeated = Posterior(posterior.mu.repeat(draws, 1), posterior.scale.repeat(draws, 1))
    z = repeated.sample(torch.randn(repeated.mu.shape, generator=generator, dtype=posterior.mu.dtype))
    log_p = StandardNormal(posterior.latent_dim).log_prob(z)
    plain = (log_aggregate(posterior, z) - log_p).view(draws, m)
    control = (repeated.log_prob(z) - log_p).view(draws, m) - kl_posterior_prior(posterior)
    reduced = with_control_variate(plain, control)
    of_mc, of_controlled = (math.sqrt(float(values.var(0).mean()) / m) for values in (plain, reduced))
    if posterior.latent_dim <= QUADRATURE_DIMENSIONS:
        return Reference(kl_by_quadrature(posterior), 0.0, of_mc, of_controlled)
    return Reference(float(reduced.mean()), of_controlled / math.sqrt(draws), of_mc, of_controlled)


def with_control_variate(values: Tensor, control: Tensor) -> Tensor:
    """Subtract from values (draws, strata) the multiple of a zero-mean control variate that minimises their variance.

    The variance is that within strata. The multiple is fitted on one half of the draws and used on the other, so the
    mean stays unbiased.
    """
    half = len(values) // 2
    pairs = [(values[:half], control[:half]), (values[half:], control[half:])]
    multiples = []
    for value, zero in pairs:
        within = zero - zero.mean(0)
        multiples.append((value * within).sum() / within.square().sum().clamp_min(torch.finfo(values.dtype).tiny))
    return torch.cat([value - c * zero for (value, zero), c in zip(pairs, reversed(multiples), strict=True)])


def kl_by_quadrature(posterior: Posterior) -> float:
    """D_KL[q(z|B_M) ‖ N(0, I)] for d_z = 1 or 2, nats: ∫ q log q on a grid, the cross-entropy in closed form."""
    return negative_entropy(posterior) + float(cross_entropy_prior(posterior))


def negative_entropy(posterior: Posterior) -> float:
    """∫ q log q of the aggregate posterior by the trapezium rule (converges exponentially for Gaussians), nats.

    A diagonal Gaussian is a product over the axes, so the mixture on a 2-D grid is one matrix product.
    """
    if posterior.latent_dim > QUADRATURE_DIMENSIONS:
        raise ValueError(f"quadrature needs d_z ≤ {QUADRATURE_DIMENSIONS}, got {posterior.latent_dim}")
    first, step = _density_on_axis(posterior, 0)
    if posterior.latent_dim == 1:
        second, other_step = torch.ones(len(posterior), 1, dtype=first.dtype), 1.0
    else:
        second, other_step = _density_on_axis(posterior, 1)
    total = 0.0
    for block in torch.split(first.T, max(1, _BLOCK_POINTS // second.shape[1])):
        q = block @ second / len(posterior)
        total += float(torch.xlogy(q, q).sum())
    return total * step * other_step


def _density_on_axis(posterior: Posterior, axis: int) -> tuple[Tensor, float]:
    """Every posterior's density on a uniform grid along one axis, (M, points), and the grid's step."""
    mu, sigma = posterior.mu[:, axis], posterior.scale[:, axis]
    step = float(sigma.min()) / _POINTS_PER_SIGMA[posterior.latent_dim]
    low, high = float((mu - _REACH * sigma).min()), float((mu + _REACH * sigma).max())
    z = low + step * torch.arange(math.ceil((high - low) / step) + 1, dtype=mu.dtype)
    standardised = (z - mu[:, None]) / sigma[:, None]
    return (-0.5 * standardised.square()).exp() / (sigma[:, None] * math.sqrt(2 * math.pi)), step
