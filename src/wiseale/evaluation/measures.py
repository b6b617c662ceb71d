"""The measures of a representation; nats per observation unless said otherwise. ``docs/measures.md`` defines each."""

from __future__ import annotations

import math

import torch

from wiseale.divergences import (
    kl_aggregate_lower_bound,
    kl_aggregate_upper_bound,
    kl_posterior_prior,
    log_aggregate,
)
from wiseale.evaluation.encoded import Encoded
from wiseale.priors import StandardNormal
from wiseale.training.randomness import standard_normal

Measures = dict[str, float | int | None]

ACTIVE_VARIANCE = 0.01


@torch.no_grad()
def reconstruction(encoded: Encoded, seed: int) -> Measures:
    """−log p(x|z) and mean squared error per entry (network's units), from one z ~ q(z|x) and from z = mu."""
    noise = standard_normal(tuple(encoded.posterior.mu.shape), seed, "evaluate", 0)
    drawn = encoded.posterior.sample(noise)
    result: Measures = {}
    for suffix, codes in (("", drawn), ("_at_mu", encoded.posterior.mu)):
        nats = squared = 0.0
        for x, part in encoded.blocks():
            likelihood = encoded.model.decode(codes[part])
            nats -= float(likelihood.log_prob(x).double().sum())
            squared += float((x - likelihood.mean).double().square().flatten(1).mean(1).sum())
        result[f"reconstruction{suffix}"] = nats / len(encoded.rows)
        result[f"mse{suffix}"] = squared / len(encoded.rows)
    return result


@torch.no_grad()
def divergence(encoded: Encoded, seed: int) -> Measures:
    """How far the posteriors, one by one and averaged, are from the prior."""
    q = encoded.posterior
    kl = float(kl_posterior_prior(q).double().mean())
    z = q.sample(standard_normal(tuple(q.mu.shape), seed, "evaluate", 1))
    log_ratio = (log_aggregate(q, z) - StandardNormal(q.latent_dim).log_prob(z)).double()
    aggregate = float(log_ratio.mean())
    return {
        "kl_posterior_prior": kl,
        "kl_aggregate_mc": aggregate,
        "kl_aggregate_mc_standard_error": float(log_ratio.std()) / math.sqrt(len(q)),
        "kl_aggregate_lower_bound": float(kl_aggregate_lower_bound(q)),
        "kl_aggregate_jensen_upper_bound": float(kl_aggregate_upper_bound(q, "jensen")),
        "kl_aggregate_bhattacharyya_upper_bound": float(kl_aggregate_upper_bound(q, "bhattacharyya")),
        "mutual_information": kl - aggregate,
    }


@torch.no_grad()
def widths(encoded: Encoded) -> Measures:
    """How many units carry something, and how wide the posteriors are."""
    q = encoded.posterior
    return {
        "active_units": int((q.mu.double().var(0) > ACTIVE_VARIANCE).sum()),
        "sigma_floor_fraction": float((q.sigma <= 1.01 * encoded.sigma_min).double().mean()),
        "sigma_geometric_mean": float(q.sigma.double().log().mean().exp()),
    }
