"""Negative log likelihood by importance weighting (Burda et al. 2016), the posterior as proposal."""

from __future__ import annotations

import math
from collections.abc import Iterator

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

    def draws() -> Iterator[Tensor]:
        for k in range(case.nll_samples):
            tick(k / case.nll_samples)
            yield case.noise(tuple(q.mu.shape), Draw.IMPORTANCE, k)

    nll = importance_weighted_nll(encoded.model, x, q, draws())
    numbers = (float(nll.mean()), standard_error(nll), case.nll_samples, len(rows))
    return Findings.of(dict(zip(NAMES, numbers, strict=True)))


def importance_weighted_nll(model: Model, x: Tensor, q: Posterior, draws: Iterator[Tensor]) -> Tensor:
    """Each row's estimate from one sample per row and per noise (n, d_z) in ``draws``, nats, (n,), float64.

    Its expectation falls towards −log p(x) as samples are added. Memory does not grow with their number: sums of
    weights are kept in the log domain, and the decoder sees a block of rows at a time.
    """
    blocks = torch.split(x, BATCH)
    log_total = torch.full((len(q),), -math.inf, dtype=torch.float64)
    count = 0
    for epsilon in draws:
        z = q.sample(epsilon)
        # From the noise itself: (z − mu)/sigma would lose digits where sigma is small.
        log_q = -0.5 * (epsilon.square() + LOG_2PI).sum(-1) - q.sigma.log().sum(-1)
        log_p = StandardNormal(q.latent_dim).log_prob(z)
        codes = torch.split(z, BATCH)
        log_x = torch.cat([model.decode(c).log_prob(rows) for c, rows in zip(codes, blocks, strict=True)])
        log_total = torch.logaddexp(log_total, log_x.double() + log_p.double() - log_q.double())
        count += 1
    return math.log(count) - log_total
