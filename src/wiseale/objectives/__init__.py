"""The systems that are compared: one file each, all composed from :mod:`wiseale.divergences`."""

from __future__ import annotations

from typing import Any

from wiseale import config, registry
from wiseale.objectives.terms import Objective, Terms

__all__ = ["Objective", "Terms", "make_objective", "objective_names"]


def make_objective(spec: str, **settings: Any) -> Objective:
    """The objective a spec names: ``make_objective("wise_ale:estimator=mc", prior_weight="paper")``."""
    objective: Objective = config.build("objective", spec, **settings)
    return objective


def objective_names() -> list[str]:
    """Names of all objectives."""
    return registry.names("objective")
