"""Rows of runs that were never made, for tests of what is computed from rows."""

from dataclasses import replace

from wiseale.objectives import make_objective
from wiseale.paper.rows import Condition, RunRow

PAPER = Condition(
    *("sine", "paper", "", "sine", 200_000, 50, 64, 4, "paper_sine:init=glorot", "glorot"),
    *("gaussian", 5e-4, "constant", 10_000, "abc"),
)
SMALL = replace(PAPER, scale="small", rows=20_000, epochs=10)


def row(system, seed, condition=PAPER, **measures):
    warmup = float(system.settings.get("prior_warmup", 0))
    weight = make_objective(system.objective).effective_weight(condition.batch_size, condition.rows)
    return RunRow(
        condition, system.name, system.objective, weight, warmup, seed, 1.5, "0.1", "c0ffee", '{"a": "1,2"}', measures
    )


def seeds(system, values, condition=PAPER, measure="mse"):
    return [row(system, seed, condition, **{measure: value}) for seed, value in enumerate(values)]


def both(system, reconstructions, kls):
    pairs = zip(reconstructions, kls, strict=True)
    return [row(system, n, reconstruction=r, kl_aggregate_mc=k) for n, (r, k) in enumerate(pairs)]
