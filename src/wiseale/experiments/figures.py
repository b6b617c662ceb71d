"""Figures of a comparison: training curves, rate and distortion, the aggregate KL between its bounds, single models."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mode
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from wiseale.experiments.comparison import Result, Summary, System, summarize
from wiseale.figures.model_pictures import model_pictures, run_curves, training_curves
from wiseale.figures.style import (
    PALETTE,
    SMALL,
    Dash,
    Folder,
    SavedFigure,
    legend_below,
    new_figure,
    point_style,
    wrapped,
)
from wiseale.objectives import make_objective
from wiseale.objectives.aevb import Aevb, BetaVae
from wiseale.runs.run import Run

# Measures of evaluation.json that make up a sandwich, by its fields.
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


@dataclass(frozen=True)
class LineStyle:
    """Label and style of a curve; colour, dashes and marker each identify it on their own."""

    label: str
    colour: str
    dash: Dash
    marker: str
    width: float = 1.5


LINE_STYLES = {
    "tightest": LineStyle("tightest upper bound", "0.82", "-", "", 5.0),
    "exact": LineStyle("exact", PALETTE[6], "-", "", 2.0),
    "aevb": LineStyle("mean AEVB KL", PALETTE[4], (0, (7, 2)), "D"),
    "jensen": LineStyle("jensen (the paper's)", PALETTE[0], "-", "o"),
    "bhattacharyya": LineStyle("bhattacharyya", PALETTE[1], "--", "s"),
    "pairwise_kl": LineStyle("pairwise_kl (lower)", PALETTE[2], "-.", "^"),
    "second_jensen": LineStyle("second Jensen step", PALETTE[3], ":", "v"),
    "mc": LineStyle("mc: standard error, one draw each", PALETTE[5], (0, (3, 1, 1, 1)), "x"),
}


@dataclass(frozen=True)
class Sandwich:
    """Estimates of one aggregate KL, nats; ``aevb`` is the mean KL of the single posteriors, also an upper bound."""

    lower: float
    mc: float
    mc_standard_error: float
    jensen: float
    bhattacharyya: float
    aevb: float


_STYLE_NAMES = {"lower": "pairwise_kl", "bhattacharyya": "bhattacharyya", "jensen": "jensen", "aevb": "aevb"}
_BAND: dict[str, Any] = {"color": "0.82", "linewidth": 7, "solid_capstyle": "butt"}
_CENTRE: dict[str, Any] = {"color": "black", "marker": "|", "markersize": 11, "capsize": 2}


def bound_sandwich(systems: Mapping[str, Sandwich]) -> Figure:
    """One row per system: values on the left, bound minus Monte Carlo value on the right.

    A grey band reaches from the lower bound (or 0, if larger) to the tightest upper bound.
    """
    names = [wrapped(name) for name in systems]
    tallest = max(name.count("\n") + 1 for name in names)
    figure = new_figure(7.0, max(0.34, 0.15 * tallest) * len(systems) + 1.35)
    values, errors = figure.subplots(1, 2, sharey=True)
    for row, one in enumerate(systems.values()):
        band = (max(0.0, one.lower), min(one.jensen, one.bhattacharyya))
        for ax, origin in ((values, 0.0), (errors, one.mc)):
            ax.plot([end - origin for end in band], [row, row], **_BAND)
            for name in _STYLE_NAMES:
                if ax is values or name != "aevb":  # aevb − mc is the mutual information, which dwarfs the other errors
                    ax.plot(getattr(one, name) - origin, row, **_mark(name))
            ax.errorbar(one.mc - origin, row, xerr=2 * one.mc_standard_error, **_CENTRE)
    values.set_yticks(range(len(systems)), names, parse_math=False)
    values.set_ylim(len(systems) - 0.4, -0.6)
    if max(one.aevb for one in systems.values()) > 10:
        values.set_xscale("symlog", linthresh=1)
        values.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    errors.axvline(0, color="0.35", linewidth=0.8)
    ends = [end - one.mc for one in systems.values() for end in (one.lower, one.jensen, one.bhattacharyya)]
    reach = 1.15 * max(0.05, *map(abs, ends))  # set by the bounds: a Monte Carlo error bar may be many times as long
    errors.set_xlim(-reach, reach)
    for ax, label in ((values, "aggregate KL (nats)"), (errors, "bound − Monte Carlo value (nats)")):
        ax.set_xlabel(label, fontsize=SMALL)
        ax.tick_params(labelsize=SMALL)
        ax.grid(axis="x", alpha=0.25)
    labels = {name: LINE_STYLES[style].label for name, style in _STYLE_NAMES.items()}
    keys: list[Any] = [values.plot([], [], **_mark(name), label=label)[0] for name, label in labels.items()]
    keys.append(values.errorbar([], [], xerr=[], label="Monte Carlo ± 2 standard errors", **_CENTRE))
    figure.legend(handles=keys, loc="outside lower center", ncols=3, fontsize=SMALL, frameon=False)
    return figure


def _mark(name: str) -> dict[str, Any]:
    style = LINE_STYLES[_STYLE_NAMES[name]]
    hollow = {"markersize": 5, "markerfacecolor": "none", "markeredgewidth": 1.3, "linestyle": "none"}
    return {"color": style.colour, "marker": style.marker, **hollow}


Point = tuple[float, float]


@dataclass(frozen=True)
class SystemPoint:
    """A system in the plane: the mean over its runs, and each run; a line joins systems of one family."""

    family: Hashable
    mean: Point
    runs: Sequence[Point] = ()


def rate_distortion(systems: Mapping[str, SystemPoint]) -> Figure:
    """One marker per system, with small markers for its runs; lower left is better in both measures."""
    figure = new_figure(5.6, 4.0)
    ax = figure.subplots()
    for family in dict.fromkeys(one.family for one in systems.values()):
        x, y = zip(*sorted(one.mean for one in systems.values() if one.family == family), strict=True)
        ax.plot(x, y, color="0.75", linewidth=1.0, zorder=1)
    for number, (name, one) in enumerate(systems.items()):
        colour, marker = point_style(number)
        ax.plot(*one.mean, color=colour, marker=marker, linestyle="none", markersize=7, label=name, zorder=3)
        if len(one.runs) > 1:
            ax.plot(*zip(*one.runs, strict=True), marker, color=colour, alpha=0.45, markersize=3, zorder=2)
    if max(one.mean[0] for one in systems.values()) > 10:
        ax.set_xscale("symlog", linthresh=1)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.set_xlabel("aggregate KL (nats)")
    ax.set_ylabel("reconstruction (nats)")
    ax.grid(alpha=0.25)
    legend_below(figure, ax)
    return figure
