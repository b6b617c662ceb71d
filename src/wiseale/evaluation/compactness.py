"""Whether the posteriors fill the prior: the paper's minimal gaps."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

from wiseale.evaluation.case import PRIOR_DRAWS, Case, Draw, Tick
from wiseale.evaluation.findings import Findings
from wiseale.evaluation.standard_error import standard_error
from wiseale.posterior import Posterior

NAMES = (
    "kl_reverse_mc",
    "kl_reverse_mc_standard_error",
    "jensen_shannon_mc",
    "jensen_shannon_mc_standard_error",
    "prior_mass_covered",
    "prior_draws",
)
ELLIPSOID_MASS = 0.95

_BLOCK_PAIRS = 1 << 21  # pairs of code and posterior at a time: 16 MB in float64


@torch.no_grad()
def compactness(case: Case, tick: Tick) -> Findings:
    """Reverse KL and Jensen–Shannon divergence of the prior and the aggregate posterior, and covered prior mass."""
    at_codes, at_prior = case.log_ratio, case.log_ratio_at_prior
    tick(0.5)
    jensen_shannon, uncertainty = jensen_shannon_divergence(at_codes, at_prior)
    numbers = (
        float(-at_prior.mean()),
        standard_error(at_prior),
        jensen_shannon,
        uncertainty,
        mass_covered(case.encoded.posterior, case.prior_codes(PRIOR_DRAWS, Draw.PRIOR)),
        PRIOR_DRAWS,
    )
    return Findings.of(dict(zip(NAMES, numbers, strict=True)))


def jensen_shannon_divergence(at_q: Tensor, at_p: Tensor) -> tuple[float, float]:
    """½ KL(q‖m) + ½ KL(p‖m), m = ½(q + p), from log q − log p at draws from q and from p; with its standard error."""
    from_q, from_p = math.log(2) - softplus(-at_q), math.log(2) - softplus(at_p)
    value = 0.5 * float(from_q.mean() + from_p.mean())
    return value, 0.5 * math.hypot(standard_error(from_q), standard_error(from_p))


def mass_covered(q: Posterior, z: Tensor) -> float:
    """Fraction of codes (K, d_z) inside at least one posterior's 95 % ellipsoid."""
    precision = q.scale.double().pow(-2)
    scaled = q.mu.double() * precision
    # Σ_k ((z − mu)/sigma)² as one matrix product; float64 leaves ample room for the cancellation.
    right = torch.cat((precision, -2 * scaled, (q.mu.double() * scaled).sum(1, keepdim=True)), 1).T
    half_d = torch.tensor(q.latent_dim / 2, dtype=torch.float64)

    def inside(block: Tensor) -> int:
        left = torch.cat((block.square(), block, torch.ones_like(block[:, :1])), 1)
        nearest = (left @ right).amin(1).clamp_min(0)
        # The mass of a Gaussian within this distance of its centre: the chi-square distribution function.
        return int((torch.special.gammainc(half_d, nearest / 2) <= ELLIPSOID_MASS).sum())

    blocks = torch.split(z.double(), max(1, _BLOCK_PAIRS // len(q)))
    return sum(map(inside, blocks)) / len(z)
