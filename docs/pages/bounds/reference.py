"""Reference values of the aggregate KL: quadrature in one and two dimensions, many Monte Carlo draws in more."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from wiseale.divergences import kl_posterior_prior, log_aggregate
from wiseale.paper.toy_values import QUADRATURE_DIMENSIONS, kl_by_quadrature
from wiseale.posterior import Posterior
from wiseale.priors import StandardNormal


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
