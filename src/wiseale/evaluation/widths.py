"""How many units vary with x, and how wide the posteriors are (sigma)."""

from __future__ import annotations

from wiseale.evaluation.case import Case, Tick
from wiseale.evaluation.findings import Findings
from wiseale.models import collapse

NAMES = ("sigma_floor_fraction", "sigma_geometric_mean")


def active_units(case: Case, tick: Tick) -> Findings:
    """Units whose mean varies from row to row: Var_x mu_k > 0.01."""
    mu = case.encoded.posterior.mu
    if len(mu) < 2:
        return Findings.none(("active_units",), "needs at least 2 rows")
    return Findings.of({"active_units": collapse.active_units(mu)})


def widths(case: Case, tick: Tick) -> Findings:
    """Fraction of sigma at its floor, and the geometric mean of sigma."""
    sigma = case.encoded.posterior.scale.double()
    return Findings.of(
        {
            "sigma_floor_fraction": float((sigma <= 1.01 * case.encoded.model.sigma_min).double().mean()),
            "sigma_geometric_mean": float(sigma.log().mean().exp()),
        }
    )
