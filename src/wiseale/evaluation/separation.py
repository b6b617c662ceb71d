"""How the posteriors lie: their widths, the paper's clear borders between them, and its minimal gaps in the prior."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

from wiseale.evaluation.case import Case, Draw, Tick, standard_error
from wiseale.evaluation.record import Findings
from wiseale.models import collapse
from wiseale.posterior import Posterior

WIDTHS = ("sigma_floor_fraction", "sigma_geometric_mean")
SEPARATION = ("separation", "separation_entropy", "separation_batches")
COMPACTNESS = (
    "kl_reverse_mc",
    "kl_reverse_mc_standard_error",
    "jensen_shannon_mc",
    "jensen_shannon_mc_standard_error",
    "prior_mass_covered",
    "prior_draws",
)
COVERAGE = ("code_density", "code_coverage")

BATCH_SIZE = 64
LEAST_BATCHES = 20
PRIOR_DRAWS = 10_000
ELLIPSOID_MASS = 0.95
NEIGHBOURS = 5

_BLOCK_PAIRS = 1 << 21  # pairs of code and posterior or draw at a time: 16 MB in float64


def active_units(case: Case, tick: Tick) -> Findings:
    """Units whose mean varies from row to row: Var_x mu_k > 0.01."""
    mu = case.encoded.posterior.mu
    if len(mu) < 2:
        return Findings.none(("active_units",), "needs at least 2 rows")
    return Findings.of({"active_units": collapse.active_units(mu)})


def widths(case: Case, tick: Tick) -> Findings:
    """Fraction of sigma at its floor, and the geometric mean of sigma."""
    sigma = case.encoded.posterior.scale.double()
    at_floor = sigma <= 1.01 * case.encoded.model.sigma_min
    numbers = (float(at_floor.double().mean()), float(sigma.log().mean().exp()))
    return Findings.of(dict(zip(WIDTHS, numbers, strict=True)))


def separation(case: Case, tick: Tick) -> Findings:
    """E r_i and −E log r_i (nats) over batches of 64 rows, r_i = q_i(z)/Σ_j q_j(z) at z ~ q_i."""
    q = case.encoded.posterior
    if len(q) < BATCH_SIZE:
        return Findings.none(SEPARATION, f"needs batches of {BATCH_SIZE} rows, there are {len(q)}")
    log_r = []
    per_pass = len(q) // BATCH_SIZE
    for number in range(math.ceil(LEAST_BATCHES / per_pass)):
        order = case.shuffled(Draw.SEPARATION_ROWS, number)
        epsilon = case.noise(tuple(q.mu.shape), Draw.SEPARATION, number)
        batches = order[: per_pass * BATCH_SIZE].view(per_pass, BATCH_SIZE)
        log_r += [log_responsibility(q[rows], epsilon[rows]) for rows in batches]
    every = torch.stack(log_r)
    numbers = (float(every.exp().mean()), float(-every.mean()), len(every))
    return Findings.of(dict(zip(SEPARATION, numbers, strict=True)))


def log_responsibility(q: Posterior, epsilon: Tensor) -> Tensor:
    """log q_i(z_i)/Σ_j q_j(z_i) at z_i = mu_i + sigma_i·epsilon_i, nats, (M,), float64."""
    mu, sigma, epsilon = q.mu.double(), q.scale.double(), epsilon.double()
    standardised = (mu[:, None] - mu + (sigma * epsilon)[:, None]) / sigma
    log_q = -0.5 * standardised.square().sum(-1) - sigma.log().sum(-1)
    return log_q.log_softmax(-1).diagonal()


@torch.no_grad()
def compactness(case: Case, tick: Tick) -> Findings:
    """Reverse KL and Jensen–Shannon divergence of the prior and the aggregate posterior, and covered prior mass."""
    z = case.prior_codes(PRIOR_DRAWS)
    at_codes, at_prior = case.log_ratio, case.log_ratio_at(z)
    tick(0.5)
    numbers = (
        float(-at_prior.mean()),
        standard_error(at_prior),
        *jensen_shannon_divergence(at_codes, at_prior),
        mass_covered(case.encoded.posterior, z),
        PRIOR_DRAWS,
    )
    return Findings.of(dict(zip(COMPACTNESS, numbers, strict=True)))


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


@torch.no_grad()
def coverage(case: Case, tick: Tick) -> Findings:
    """Density and coverage (Naeem et al. 2020) of one code per row against as many draws from the prior."""
    codes = case.codes(Draw.COVERAGE)
    if len(codes) <= NEIGHBOURS:
        return Findings.none(COVERAGE, f"needs more than {NEIGHBOURS} rows, there are {len(codes)}")
    numbers = density_and_coverage(case.prior_codes(len(codes)), codes, NEIGHBOURS)
    return Findings.of(dict(zip(COVERAGE, numbers, strict=True)))


@torch.no_grad()
def density_and_coverage(real: Tensor, fake: Tensor, k: int) -> tuple[float, float]:
    """How many real points' balls hold a fake point, over k, and the fraction of balls that hold any.

    The ball of a real point (N, d) reaches to its k-th nearest other real point; fake points are (M, d).
    """
    inside = filled = 0
    for rows in torch.split(torch.arange(len(real)), max(1, _BLOCK_PAIRS // max(len(real), len(fake)))):
        neighbours = _distances(real[rows], real)
        neighbours[torch.arange(len(rows)), rows] = torch.inf  # not its own neighbour
        radius = neighbours.kthvalue(k, dim=1).values
        hit = _distances(real[rows], fake) < radius[:, None]
        inside += int(hit.sum())
        filled += int(hit.any(1).sum())
    return inside / (k * len(fake)), filled / len(real)


def _distances(left: Tensor, right: Tensor) -> Tensor:
    return torch.cdist(left, right, compute_mode="donot_use_mm_for_euclid_dist")
