"""The objectives of the compared systems: one file each, composed from :mod:`wiseale.divergences`."""

from __future__ import annotations

from typing import Any

from wiseale import config, registry
from wiseale.objectives.terms import Objective, Terms

__all__ = ["Objective", "Terms", "make_objective", "objective_names"]


def make_objective(spec: str, **settings: Any) -> Objective:
    """Make the objective that a spec names; keyword arguments override its settings.

    >>> make_objective("wise_ale:estimator=mc", prior_weight="paper")
    WiseAle(estimator='mc', prior_weight='paper', aggregate='batch', bank_size=1024)

    An objective is called on a batch inside any training loop and returns its :class:`Terms`:

    >>> import torch
    >>> from wiseale.likelihoods import GaussianFamily
    >>> from wiseale.posterior import Posterior
    >>> x = torch.zeros(2, 3)
    >>> q = Posterior(mu=torch.tensor([[-1.0], [1.0]]), sigma=torch.ones(2, 1))
    >>> terms = make_objective("aevb")(x, q, q.mu, GaussianFamily()(x))
    >>> terms.reconstruction, terms.prior
    (tensor([2.7568, 2.7568]), tensor(0.5000))
    """
    objective: Objective = config.build("objective", spec, **settings)
    return objective


def objective_names() -> list[str]:
    """Names of all registered objectives."""
    return registry.names("objective")
