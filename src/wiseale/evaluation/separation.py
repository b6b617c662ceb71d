"""Whether a code tells which observation it came from: the paper's clear borders between posteriors."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from wiseale.evaluation.case import Case, Draw, Tick
from wiseale.evaluation.findings import Findings
from wiseale.posterior import Posterior

NAMES = ("separation", "separation_entropy", "separation_batches")
BATCH_SIZE = 64
LEAST_BATCHES = 20


def separation(case: Case, tick: Tick) -> Findings:
    """E r_i and −E log r_i (nats) over batches of 64 rows, r_i = q_i(z)/Σ_j q_j(z) at z ~ q_i."""
    q = case.encoded.posterior
    if len(q) < BATCH_SIZE:
        return Findings.none(NAMES, f"needs batches of {BATCH_SIZE} rows, there are {len(q)}")
    log_r = []
    per_pass = len(q) // BATCH_SIZE
    for number in range(math.ceil(LEAST_BATCHES / per_pass)):
        order = case.shuffled(Draw.SEPARATION_ROWS, number)
        epsilon = case.noise(tuple(q.mu.shape), Draw.SEPARATION, number)
        batches = order[: per_pass * BATCH_SIZE].view(per_pass, BATCH_SIZE)
        log_r += [log_responsibility(q[rows], epsilon[rows]) for rows in batches]
    every = torch.stack(log_r)
    return Findings.of(
        {
            "separation": float(every.exp().mean()),
            "separation_entropy": float(-every.mean()),
            "separation_batches": len(every),
        }
    )


def log_responsibility(q: Posterior, epsilon: Tensor) -> Tensor:
    """log q_i(z_i)/Σ_j q_j(z_i) at z_i = mu_i + sigma_i·epsilon_i, nats, (M,), float64."""
    mu, sigma, epsilon = q.mu.double(), q.scale.double(), epsilon.double()
    standardised = (mu[:, None] - mu + (sigma * epsilon)[:, None]) / sigma
    log_q = -0.5 * standardised.square().sum(-1) - sigma.log().sum(-1)
    return log_q.log_softmax(-1).diagonal()
