"""The pictures of a comparison: curves, rate and distortion, bounds, and what single models show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mode

from wiseale.config import parse_spec
from wiseale.evaluation.encoded import encode_run
from wiseale.experiments.code_pictures import code_pictures
from wiseale.experiments.comparison import Result, Summary, summarize
from wiseale.experiments.decoded_pictures import decoded_pictures
from wiseale.experiments.drawn import Drawn, drawn
from wiseale.figures.curves import training_curves
from wiseale.figures.rate_distortion import Placed, rate_distortion
from wiseale.figures.sandwich import Sandwich, bound_sandwich
from wiseale.objectives import make_objective

_POINTS_SHOWN = 3000

# Measures of evaluation.json that make up a sandwich, in the order of its fields.
_SANDWICH = {
    "lower": "kl_aggregate_lower_bound",
    "mc": "kl_aggregate_mc",
    "mc_standard_error": "kl_aggregate_mc_standard_error",
    "jensen": "kl_aggregate_jensen_upper_bound",
    "bhattacharyya": "kl_aggregate_bhattacharyya_upper_bound",
    "aevb": "kl_posterior_prior",
}


def draw_all(figures: Path, results: Sequence[Result], sweep: Sequence[Result] = ()) -> list[Drawn]:
    """Every figure that suits the data; where single runs are shown, those of the seed that most systems have.

    Runs of a sweep enter the plane of rate and distortion alone: there would be no room for them elsewhere.
    """
    by_system: dict[str, list[Result]] = {}
    for result in results:
        by_system.setdefault(result.system.name, []).append(result)
    summary = summarize(results)
    made = [_curves(figures, by_system)]
    made += [figure for figure in (_plane(figures, [*results, *sweep]), _sandwich(figures, summary)) if figure]
    seed = mode(result.seed for result in results)  # another seed may hold out other rows
    models = {r.system.name: encode_run(r.path, most=_POINTS_SHOWN) for r in results if r.seed == seed}
    return [*made, *decoded_pictures(figures, models, seed), *code_pictures(figures, models)]


def _curves(figures: Path, by_system: dict[str, list[Result]]) -> Drawn:
    figure = training_curves({name: [run.metrics for run in runs] for name, runs in by_system.items()})
    seeds = max(len(runs) for runs in by_system.values())
    how = "one seed" if seeds == 1 else f"mean and range of {seeds} seeds"
    caption = f"Training: reconstruction error, AEVB KL and ELBO by epoch, nats per observation, training rows ({how})."
    return drawn(figure, figures, "training_curves", caption)


def _plane(figures: Path, results: Sequence[Result]) -> Drawn | None:
    summary = summarize(results)
    placed = {}
    for name, estimates in summary.items():
        if "kl_aggregate_mc" not in estimates:
            continue
        runs = [result for result in results if result.system.name == name]
        found = [run.evaluation.measures for run in runs]
        points = [(measures["kl_aggregate_mc"], measures["reconstruction"]) for measures in found]
        placed[name] = Placed(
            _family(runs[0].system.objective),
            (estimates["kl_aggregate_mc"].mean, estimates["reconstruction"].mean),
            [(x, y) for x, y in points if x is not None and y is not None],
        )
    if not placed:
        return None
    caption = (
        "Reconstruction against distance of the aggregate posterior from the prior: means over seeds, single seeds "
        "small; lines join the weights of one system. Lower left is better. A deterministic encoder or a prior "
        "other than N(0, I) has no place here."
    )
    return drawn(rate_distortion(placed), figures, "rate_distortion", caption)


def _family(objective: str) -> str:
    """What a system is apart from its weight; AEVB is the β-VAE with β = 1."""
    name, settings = parse_spec(objective)
    settings.pop(getattr(make_objective(objective), "weight_setting", None) or "", None)
    return " ".join(["beta_vae" if name == "aevb" else name, *(f"{k}={v}" for k, v in sorted(settings.items()))])


def _sandwich(figures: Path, summary: Summary) -> Drawn | None:
    found = {
        name: Sandwich(**{field: measures[measure].mean for field, measure in _SANDWICH.items()})
        for name, measures in summary.items()
        if all(measure in measures for measure in _SANDWICH.values())
    }
    if not found:
        return None
    caption = (
        "The aggregate KL of all evaluated rows between its bounds (means over seeds): the grey band reaches from the "
        "lower bound, or 0, to the tightest upper bound; a Monte Carlo value outside it is off by chance. Right: "
        "distance of each bound from the Monte Carlo value."
    )
    return drawn(bound_sandwich(found), figures, "bound_sandwich", caption)
