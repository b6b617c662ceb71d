"""All figures of a comparison: training curves, rate and distortion, bounds, and figures of single models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mode

from wiseale.experiments.comparison import Result, Summary, System, summarize
from wiseale.experiments.figures import Sandwich, SystemPoint, bound_sandwich, rate_distortion
from wiseale.figures.curves import training_curves
from wiseale.figures.model_pictures import model_pictures, run_curves
from wiseale.figures.style import Folder, SavedFigure
from wiseale.objectives import make_objective
from wiseale.objectives.aevb import Aevb, BetaVae
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
    folder = Folder(figures)
    pictures = [_curves(folder, _by_system(results)), _rate_distortion(folder, [*results, *sweep])]
    pictures.append(_sandwich(folder, summarize(results)))
    seed = mode(result.seed for result in results)  # runs of one seed hold out the same rows
    runs = {result.system.name: Run.open(result.path) for result in results if result.seed == seed}
    return [*(picture for picture in pictures if picture), *model_pictures(folder, runs, seed)]


def _by_system(results: Sequence[Result]) -> dict[str, list[Result]]:
    systems: dict[str, list[Result]] = {}
    for result in results:
        systems.setdefault(result.system.name, []).append(result)
    return systems


def _curves(folder: Folder, systems: dict[str, list[Result]]) -> SavedFigure:
    seeds = max(len(runs) for runs in systems.values())
    if len(systems) == seeds == 1:
        (runs,) = systems.values()
        return run_curves(folder, runs[0].metrics)
    figure = training_curves({name: [run.metrics for run in runs] for name, runs in systems.items()})
    how = "one seed" if seeds == 1 else f"mean and range of {seeds} seeds"
    caption = f"Training: reconstruction error, AEVB KL and ELBO by epoch, nats per observation, training rows ({how})."
    return folder.save(figure, "training_curves", caption)


def _rate_distortion(folder: Folder, results: Sequence[Result]) -> SavedFigure | None:
    summary, systems = summarize(results), {}
    for name, runs in _by_system(results).items():
        means = summary[name]
        if "kl_aggregate_mc" not in means:
            continue
        measures = [run.evaluation.measures for run in runs]
        points = [(one["kl_aggregate_mc"], one["reconstruction"]) for one in measures]
        systems[name] = SystemPoint(
            _family(runs[0].system),
            (means["kl_aggregate_mc"].mean, means["reconstruction"].mean),
            [(x, y) for x, y in points if x is not None and y is not None],
        )
    if len(systems) < 2:  # a single point has nothing to be compared with
        return None
    caption = (
        "Reconstruction against distance of the aggregate posterior from the prior: means over seeds, single seeds "
        "small; lines join the weights of one system. Lower left is better. Systems with a deterministic encoder, or "
        "whose prior is not N(0, I), are not shown."
    )
    return folder.save(rate_distortion(systems), "rate_distortion", caption)


def _family(system: System) -> tuple[object, ...]:
    """The system without its weight, by which a sweep is joined; AEVB is the β-VAE with β = 1."""
    objective = make_objective(system.objective)
    weight = getattr(objective, "weight_setting", None)
    settings = [(name, value) for name, value in vars(objective).items() if name != weight]
    kind = BetaVae if isinstance(objective, Aevb) else type(objective)
    return (kind, *settings, *sorted(system.settings.items()))


def _sandwich(folder: Folder, summary: Summary) -> SavedFigure | None:
    sandwiches = {}
    for name, measures in summary.items():
        if all(measure in measures for measure in _SANDWICH.values()):
            one = Sandwich(**{field: measures[measure].mean for field, measure in _SANDWICH.items()})
            seeds = measures["kl_aggregate_mc"].n  # the error of a mean over seeds, each estimated on its own
            sandwiches[name] = replace(one, mc_standard_error=one.mc_standard_error / math.sqrt(seeds))
    if not sandwiches:
        return None
    caption = (
        "The aggregate KL of all evaluated rows between its bounds (means over seeds): the grey band reaches from the "
        "lower bound, or 0, to the tightest upper bound; a Monte Carlo value outside it is off by chance. Right: "
        "distance of each bound from the Monte Carlo value."
    )
    return folder.save(bound_sandwich(sandwiches), "bound_sandwich", caption)
