"""The evidence lower bound, against N(0, I) or against the model's own prior."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wiseale.divergences import kl_posterior_prior
from wiseale.evaluation.case import Case, Draw, Tick
from wiseale.evaluation.findings import Findings
from wiseale.objectives.terms import Batch, Terms

NAMES = ("elbo",)


@torch.no_grad()
def elbo(case: Case, tick: Tick) -> Findings:
    """E log p(x|z) − KL(q(z|x)‖p), mean over rows, nats; a model with its own prior computes its own bound."""
    own = case.encoded.model.prior
    if own is not None:
        return Findings.of({"elbo": own_bound(case, own)})
    kl = kl_posterior_prior(case.encoded.posterior).double()
    return Findings.of({"elbo": -float((case.errors.nats + kl).mean())})


def own_bound(case: Case, prior: nn.Module) -> float:
    """The bound that the prior's module gives beside its terms, from one draw for every row."""
    encoded = case.encoded
    z: Tensor = case.codes(Draw.RECONSTRUCTION)
    draws = case.generator(Draw.OWN_BOUND)
    total = 0.0
    for x, part in encoded.blocks():
        terms: Terms = prior(Batch(x, encoded.posterior[part], z[part], encoded.model.decode(z[part]), draws))
        assert terms.elbo is not None  # a prior other than N(0, I) comes with its own bound
        total += float(terms.elbo) * len(x)
    return total / len(encoded.rows)
