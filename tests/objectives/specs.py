"""The systems that contract tests enumerate: every registered name, and settings that run other code of theirs."""

import dataclasses

from wiseale.objectives import make_objective, objective_names

VARIANTS = [
    "beta_vae:beta=1/M",
    "wise_ale:prior_weight=paper",
    "wise_ale:estimator=bhattacharyya",
    "wise_ale:estimator=tightest",
    "wise_ale:estimator=mc",
    "wise_ale_exact:estimator=mc,prior_weight=0.3",
    "wise_ale_exact:reconstruction=mixture,estimator=mc",
    "gmvae:clusters=1,w_dim=1,minimum_z_prior=0.5",
    "wae_mmd:encoder=gaussian",
    "wae_gan:encoder=gaussian,add_norm=true",
    "aae:encoder=deterministic",
    "sinkhorn_ae:debiased=false",
    "sinkhorn_ae:encoder=gaussian",
    "dip_vae:kind=ii",
]
SPECS = [*objective_names(), *VARIANTS]

_SMALL = {"critic_width": 16, "hidden": 8, "prior_hidden": 8, "iterations": 5}


def small(spec):
    """The same system with narrow networks and few iterations: it trains faster and runs the same code."""
    names = {field.name for field in dataclasses.fields(make_objective(spec))}
    items = ",".join(f"{name}={value}" for name, value in _SMALL.items() if name in names and f"{name}=" not in spec)
    return spec if not items else f"{spec}{',' if ':' in spec else ':'}{items}"
