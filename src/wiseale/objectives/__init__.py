"""The objectives of the compared systems, composed from :mod:`wiseale.divergences`."""

from __future__ import annotations

from typing import Any

from wiseale import config, registry
from wiseale.objectives.terms import Batch, Objective, Terms

__all__ = ["Batch", "Objective", "Terms", "make_objective", "objective_names"]


def make_objective(spec: str, **settings: Any) -> Objective:
    """Make an objective from its name, settings after a colon or as keywords, and check them.

    Called on a :class:`Batch` it returns :class:`Terms`: loss = mean_i(reconstruction_i) + weight · prior, in nats
    per observation.

    >>> import torch
    >>> from wiseale.likelihoods import Gaussian
    >>> from wiseale.posterior import Posterior
    >>> objective = make_objective("wise_ale:estimator=jensen", prior_weight="paper")
    >>> x, q = torch.zeros(4, 3), Posterior(torch.zeros(4, 2), torch.ones(4, 2))
    >>> terms = objective(Batch(x, q, q.mu, Gaussian(x, 1.0)))  # here x_hat = x
    >>> terms.reconstruction.shape, terms.weight
    (torch.Size([4]), 0.25)
    """
    objective: Objective = config.build("objective", spec, **settings)
    return objective


def objective_names() -> list[str]:
    """The names that :func:`make_objective` knows, sorted.

    >>> objective_names()[:3]
    ['aae', 'aevb', 'beta_tc_vae']
    """
    return registry.names("objective")
