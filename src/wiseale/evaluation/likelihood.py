"""Negative log likelihood by importance weighting (Burda et al. 2016), the posterior as proposal."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from wiseale.evaluation.case import Case, Draw, Tick
from wiseale.evaluation.encoded import BATCH
from wiseale.evaluation.findings import Findings
from wiseale.evaluation.standard_error import standard_error
from wiseale.networks.model import Model
from wiseale.posterior import LOG_2PI, Posterior
from wiseale.priors import StandardNormal

NAMES = ("nll_importance_weighted", "nll_importance_weighted_standard_error", "nll_samples", "nll_rows")
NLL_ROWS = 1000


@torch.no_grad()
def likelihood(case: Case, tick: Tick) -> Findings:
    """−log (1/K) Σ_k p(x|z_k)·p(z_k)/q(z_k|x), z_k ~ q(z|x), mean over rows, nats."""
    if case.nll_samples == 0:
        return Findings.none(NAMES, "no importance samples were asked for")
    encoded = case.encoded
    rows = case.shuffled(Draw.IMPORTANCE_ROWS)[:NLL_ROWS]
    x, q = encoded.read(rows), encoded.posterior[rows]

    def draw(k: int) -> Tensor:
        tick(k / case.nll_samples)
        return case.noise(tuple(q.mu.shape), Draw.IMPORTANCE, k)

    nll = importance_weighted_nll(encoded.model, x, q, draw, case.nll_samples)
    numbers = (float(nll.mean()), standard_error(nll), case.nll_samples, len(rows))
    return Findings.of(dict(zip(NAMES, numbers, strict=True)))


def importance_weighted_nll(
    model: Model, x: Tensor, q: Posterior, draw: Callable[[int], Tensor], samples: int
) -> Tensor:
    """Each row's estimate from one code per row and sample, with the noise ``draw(k)``, (n, d_z); nats, (n,), float64.

    Its expectation falls towards −log p(x) as samples are added. Weights are summed in the
    log domain, and the decoder sees a block of rows at a time.
    """
    blocks = torch.split(x, BATCH)

    def log_weight(k: int) -> Tensor:
        epsilon = draw(k)
        z = q.sample(epsilon)
        # From the noise itself: (z − mu)/sigma would lose digits where sigma is small.
        log_q = -0.5 * (epsilon.square() + LOG_2PI).sum(-1) - q.scale.log().sum(-1)
        log_p = StandardNormal(q.latent_dim).log_prob(z)
        codes = torch.split(z, BATCH)
        log_x = torch.cat([model.decode(c).log_prob(rows) for c, rows in zip(codes, blocks, strict=True)])
        return log_x.double() + log_p.double() - log_q.double()

    log_total = torch.full((len(q),), -math.inf, dtype=torch.float64)
    for k in range(samples):
        log_total = torch.logaddexp(log_total, log_weight(k))
    return math.log(samples) - log_total
