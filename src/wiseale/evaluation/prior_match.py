"""How far the posteriors are from the prior, and the likelihood: the ELBO, and importance weighting.

Importance weighting follows Burda et al. (2016), with the posterior as proposal.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from wiseale.divergences import kl_aggregate_lower_bound, kl_aggregate_upper_bound, kl_posterior_prior
from wiseale.evaluation.case import Case, Draw, Tick, standard_error
from wiseale.evaluation.encoded import BATCH
from wiseale.evaluation.record import Findings
from wiseale.models.collapse import mutual_information
from wiseale.objectives.terms import Batch, Terms
from wiseale.posterior import LOG_2PI
from wiseale.priors import StandardNormal

PRIOR_MATCH = (
    "kl_posterior_prior",
    "kl_aggregate_mc",
    "kl_aggregate_mc_standard_error",
    "kl_aggregate_lower_bound",
    "kl_aggregate_jensen_upper_bound",
    "kl_aggregate_bhattacharyya_upper_bound",
    "mutual_information",
)
NLL = ("nll_importance_weighted", "nll_importance_weighted_standard_error", "nll_samples", "nll_rows")
NLL_ROWS = 1000


@torch.no_grad()
def prior_match(case: Case, tick: Tick) -> Findings:
    """The AEVB KL, the aggregate KL between its bounds, and the mutual information."""
    q, z, log_ratio = case.encoded.posterior, case.codes(Draw.AGGREGATE), case.log_ratio
    numbers: tuple[Tensor | float, ...] = (
        kl_posterior_prior(q).double().mean(),
        log_ratio.mean(),
        standard_error(log_ratio),
        kl_aggregate_lower_bound(q),
        kl_aggregate_upper_bound(q, estimator="jensen"),
        kl_aggregate_upper_bound(q, estimator="bhattacharyya"),
        mutual_information(q, z, log_ratio + StandardNormal(q.latent_dim).log_prob(z)),
    )
    return Findings.of(dict(zip(PRIOR_MATCH, map(float, numbers), strict=True)))


@torch.no_grad()
def elbo(case: Case, tick: Tick) -> Findings:
    """E log p(x|z) − KL(q(z|x)‖p), mean over rows, nats; a model with its own prior computes its own bound."""
    own = case.encoded.model.prior
    if own is not None:
        return Findings.of({"elbo": _own_bound(case, own)})
    kl = kl_posterior_prior(case.encoded.posterior).double()
    return Findings.of({"elbo": -float((case.errors.nats + kl).mean())})


def _own_bound(case: Case, prior: nn.Module) -> float:
    """The bound that the prior's module gives beside its terms, from one draw for every row."""
    encoded, z, draws = case.encoded, case.codes(Draw.RECONSTRUCTION), case.generator(Draw.OWN_BOUND)
    total = 0.0
    for x, part in encoded.blocks():
        terms: Terms = prior(Batch(x, encoded.posterior[part], z[part], encoded.model.decode(z[part]), draws))
        assert terms.elbo is not None  # a prior other than N(0, I) comes with its own bound
        total += float(terms.elbo) * len(x)
    return total / len(encoded.rows)


@torch.no_grad()
def likelihood(case: Case, tick: Tick) -> Findings:
    """−log (1/K) Σ_k p(x|z_k)·p(z_k)/q(z_k|x), z_k ~ q(z|x), mean over rows, nats.

    Its expectation falls towards −log p(x) as samples are added.
    """
    if case.nll_samples == 0:
        return Findings.none(NLL, "no importance samples were asked for")
    rows = case.shuffled(Draw.IMPORTANCE_ROWS)[:NLL_ROWS]
    x, q = case.encoded.read(rows), case.encoded.posterior[rows]

    blocks = torch.split(x, BATCH)  # the decoder sees a block of rows at a time
    log_total = torch.full((len(q),), -math.inf, dtype=torch.float64)
    for k in range(case.nll_samples):
        tick(k / case.nll_samples)
        epsilon = case.noise(tuple(q.mu.shape), Draw.IMPORTANCE, k)
        z = q.sample(epsilon)
        # From the noise itself: (z − mu)/sigma would lose digits where sigma is small.
        log_q = -0.5 * (epsilon.square() + LOG_2PI).sum(-1) - q.scale.log().sum(-1)
        log_p = StandardNormal(q.latent_dim).log_prob(z)
        codes = zip(torch.split(z, BATCH), blocks, strict=True)
        log_x = torch.cat([case.encoded.model.decode(of_block).log_prob(block) for of_block, block in codes])
        log_total = torch.logaddexp(log_total, log_x.double() + log_p.double() - log_q.double())
    nll = math.log(case.nll_samples) - log_total
    numbers = (float(nll.mean()), standard_error(nll), case.nll_samples, len(rows))
    return Findings.of(dict(zip(NLL, numbers, strict=True)))
