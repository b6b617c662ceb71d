"""How far the posteriors, one by one and averaged, are from the prior."""

from __future__ import annotations

import torch

from wiseale.divergences import kl_posterior_prior
from wiseale.evaluation.case import Case, Draw, Tick
from wiseale.evaluation.findings import Findings
from wiseale.evaluation.standard_error import standard_error
from wiseale.models.collapse import mutual_information
from wiseale.priors import StandardNormal

NAMES = (
    "kl_posterior_prior",
    "kl_aggregate_mc",
    "kl_aggregate_mc_standard_error",
    "kl_aggregate_lower_bound",
    "kl_aggregate_jensen_upper_bound",
    "kl_aggregate_bhattacharyya_upper_bound",
    "mutual_information",
)


@torch.no_grad()
def prior_match(case: Case, tick: Tick) -> Findings:
    """The AEVB KL, the aggregate KL between its bounds, and the mutual information."""
    q = case.encoded.posterior
    kl = float(kl_posterior_prior(q).double().mean())
    aggregate = float(case.log_ratio.mean())
    z = case.codes(Draw.AGGREGATE)
    information = mutual_information(q, z, case.log_ratio + StandardNormal(q.latent_dim).log_prob(z))
    numbers = (kl, aggregate, standard_error(case.log_ratio), *case.aggregate_bounds, information)
    return Findings.of(dict(zip(NAMES, numbers, strict=True)))
