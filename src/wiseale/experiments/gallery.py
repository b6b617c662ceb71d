"""All figures of a comparison: training curves, rate and distortion, bounds, and figures of single models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mode

from wiseale.config import parse_spec
from wiseale.experiments.comparison import Result, Summary, System, summarize
from wiseale.experiments.model_pictures import model_pictures, run_curves
from wiseale.experiments.saved_figure import Folder, SavedFigure
from wiseale.figures.curves import training_curves
from wiseale.figures.rate_distortion import SystemPoint, rate_distortion
from wiseale.figures.sandwich import Sandwich, bound_sandwich
from wiseale.objectives import make_objective
from wiseale.runs.run import Run

# Measures of evaluation.json that make up a sandwich, in the order of its fields.
_SANDWICH = {
    "lower": "kl_aggregate_lower_bound",
    "mc": "kl_aggregate_mc",
    "mc_standard_error": "kl_aggregate_mc_standard_error",
    "jensen": "kl_aggregate_jensen_upper_bound",
    "bhattacharyya": "kl_aggregate_bhattacharyya_upper_bound",
    "aevb": "kl_posterior_prior",
}


def draw_all(figures: Path, results: Sequence[Result], sweep: Sequence[Result] = ()) -> list[SavedFigure]:
    """Draw every figure that applies to the data; figures of single runs show the seed that most systems have.

    Runs of a sweep appear in the rate-distortion figure only: the others have no space for them.
    """
    by_system: dict[str, list[Result]] = {}
    for result in results:
        by_system.setdefault(result.system.name, []).append(result)
    summary = summarize(results)
    folder = Folder(figures)
    made = [_curves(folder, by_system)]
    optional = (_rate_distortion(folder, [*results, *sweep]), _sandwich(folder, summary))
    made += [figure for figure in optional if figure]
    seed = mode(result.seed for result in results)  # runs of one seed hold out the same rows
    opened = {r.system.name: Run.open(r.path) for r in results if r.seed == seed}
    return [*made, *model_pictures(folder, opened, seed)]


def _curves(folder: Folder, by_system: dict[str, list[Result]]) -> SavedFigure:
    seeds = max(len(runs) for runs in by_system.values())
    if len(by_system) == seeds == 1:
        (runs,) = by_system.values()
        return run_curves(folder, runs[0].metrics)
    figure = training_curves({name: [run.metrics for run in runs] for name, runs in by_system.items()})
    how = "one seed" if seeds == 1 else f"mean and range of {seeds} seeds"
    caption = f"Training: reconstruction error, AEVB KL and ELBO by epoch, nats per observation, training rows ({how})."
    return folder.save(figure, "training_curves", caption)


def _rate_distortion(folder: Folder, results: Sequence[Result]) -> SavedFigure | None:
    summary = summarize(results)
    placed = {}
    for name, estimates in summary.items():
        if "kl_aggregate_mc" not in estimates:
            continue
        runs = [result for result in results if result.system.name == name]
        found = [run.evaluation.measures for run in runs]
        points = [(measures["kl_aggregate_mc"], measures["reconstruction"]) for measures in found]
        placed[name] = SystemPoint(
            _family(runs[0].system),
            (estimates["kl_aggregate_mc"].mean, estimates["reconstruction"].mean),
            [(x, y) for x, y in points if x is not None and y is not None],
        )
    if len(placed) < 2:  # a single point has nothing to be compared with
        return None
    caption = (
        "Reconstruction against distance of the aggregate posterior from the prior: means over seeds, single seeds "
        "small; lines join the weights of one system. Lower left is better. Systems with a deterministic encoder, or "
        "whose prior is not N(0, I), are not shown."
    )
    return folder.save(rate_distortion(placed), "rate_distortion", caption)


def _family(system: System) -> str:
    """The system without its weight, by which a sweep is joined; AEVB is the β-VAE with β = 1."""
    name, settings = parse_spec(system.objective)
    settings.pop(getattr(make_objective(system.objective), "weight_setting", None) or "", None)
    own = {**settings, **system.settings}
    return " ".join(["beta_vae" if name == "aevb" else name, *(f"{k}={v}" for k, v in sorted(own.items()))])


def _sandwich(folder: Folder, summary: Summary) -> SavedFigure | None:
    found = {}
    for name, measures in summary.items():
        if all(measure in measures for measure in _SANDWICH.values()):
            one = Sandwich(**{field: measures[measure].mean for field, measure in _SANDWICH.items()})
            seeds = measures["kl_aggregate_mc"].n  # the error of a mean over seeds, each estimated on its own
            found[name] = replace(one, mc_standard_error=one.mc_standard_error / math.sqrt(seeds))
    if not found:
        return None
    caption = (
        "The aggregate KL of all evaluated rows between its bounds (means over seeds): the grey band reaches from the "
        "lower bound, or 0, to the tightest upper bound; a Monte Carlo value outside it is off by chance. Right: "
        "distance of each bound from the Monte Carlo value."
    )
    return folder.save(bound_sandwich(found), "bound_sandwich", caption)
