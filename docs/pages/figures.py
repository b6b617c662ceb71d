"""The paper's figures 1, 4, 5 and 6 and the sweep of the weight, drawn from kept results."""

from collections.abc import Mapping, Sequence

import numpy as np
from docs.pages.kept import IN_FIGURE_6, Results
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from wiseale import registry
from wiseale.experiments import systems as s
from wiseale.figures.decoded import reconstructions
from wiseale.figures.latent_map import posterior_contours
from wiseale.figures.model_pictures import training_curves
from wiseale.figures.style import SMALL, legend_below, panels, point_style, save_figure
from wiseale.paper.page import FIGURES
from wiseale.paper.rows import Condition, RunRow, by_system, conditions_of
from wiseale.paper.sweep import MEASURES
from wiseale.paper.toy import read_table
from wiseale.paper.toy_figures import figure4
from wiseale.report.document import Picture

FIGURE_1 = (s.WAE_MMD_GAUSSIAN, s.WISE_ALE, s.AEVB, s.BETA_VAE)
FIGURE_5 = (s.AEVB, s.BETA_VAE, s.WAE_MMD, s.WISE_ALE, s.WISE_ALE_AS_WRITTEN)
_FIGURES_5 = {"figure5a": "sine", "figure5b": "celeba"}


_CURVES = {
    "WiSE-ALE": s.sweep_of_wise_ale,
    "β-VAE (AEVB at weight 1)": s.sweep_of_beta_vae,
    "β-VAE with a warm-up": s.beta_vae_with_warm_up,
}


def sweep_points(rows: Sequence[RunRow], condition: Condition) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """By system and weight, aggregate KL and reconstruction error of every run, from the smallest weight up."""
    systems = by_system([row for row in rows if MEASURES.keys() <= row.measures.keys()], condition)
    points: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for title, system_at in _CURVES.items():
        for weight in s.SWEEP:
            if runs := systems.get(system_at(weight).name):
                both = [(row.measures["kl_aggregate_mc"], row.measures["reconstruction"]) for row in runs]
                points.setdefault(title, {})[weight] = both
    return points


def draw_weights(results: Results, rows: Sequence[RunRow], scale: str) -> Picture | None:
    """Reconstruction against aggregate KL as the weight rises; None before two weights of a system have been run."""
    conditions = conditions_of(rows, scale)
    sweeps = {name: sweep_points(rows, conditions[name][0]) for name in registry.EXPERIMENTS if name in conditions}
    shown = {
        registry.lookup("experiment", name).title: sweep
        for name, sweep in sweeps.items()
        if any(len(by_weight) > 1 for by_weight in sweep.values())
    }
    if not shown:
        return None
    caption = (
        "Reconstruction error against distance of the aggregate posterior from the prior, for each weight of the prior "
        "term: means over seeds, single runs small. Lower left is better in both."
    )
    return _save(results, weight_sweeps(shown), "weights", caption)


def draw_figures(results: Results, rows: Sequence[RunRow], scale: str) -> list[Picture]:
    """Draw into the results' folder every figure whose arrays or curves have been kept, in the paper's order."""
    conditions = {experiment: every[0] for experiment, every in conditions_of(rows, scale).items()}
    pictures = [
        _figure_1(results, conditions.get("mnist")),
        _figure_4(results, scale),
        *(_figure_5(results, name, conditions.get(experiment)) for name, experiment in _FIGURES_5.items()),
        _figure_6(results, conditions.get("sine")),
    ]
    return [picture for picture in pictures if picture is not None]


def _figure_1(results: Results, condition: Condition | None) -> Picture | None:
    arrays = results.arrays(condition) if condition else None
    if arrays is None:
        return None
    names = [system.name for system in FIGURE_1 if system.name in arrays.systems]
    if not names:
        return None
    figure = posterior_contours({name: (arrays.systems[name].mu, arrays.systems[name].sigma) for name in names})
    caption = f"Figure 1. Posteriors of unseen digits. {condition}; seed {arrays.seed}."
    return _save(results, figure, "figure1", caption)


def _figure_4(results: Results, scale: str) -> Picture | None:
    toy = results.toy(scale)
    if toy is None:
        return None
    figure = figure4(read_table(toy, "two_gaussians"), read_table(toy, "minima"))
    return _save(results, figure, "figure4", FIGURES["figure4"])


def _figure_5(results: Results, name: str, condition: Condition | None) -> Picture | None:
    arrays = results.arrays(condition) if condition else None
    if arrays is None:
        return None
    names = [system.name for system in FIGURE_5 if system.name in arrays.systems]
    if not names:
        return None
    figure = reconstructions(arrays.x, {name: arrays.systems[name].x_hat for name in names})
    number = name.removeprefix("figure")
    what = "Unseen inputs and their reconstructions from μ"
    if not len(arrays.x):
        what = "Reconstructions of unseen photographs from μ (the photographs are not kept here)"
    caption = f"Figure {number}. {what}. {condition}; seed {arrays.seed}."
    return _save(results, figure, name, caption)


def _figure_6(results: Results, condition: Condition | None) -> Picture | None:
    curves = results.curves(condition) if condition else []
    if not curves:
        return None
    runs = {x.name: [curve.epochs for curve in curves if curve.system == x.name] for x in IN_FIGURE_6}
    figure = training_curves({name: records for name, records in runs.items() if records})
    return _save(results, figure, "figure6", f"Figure 6. Training curves, mean and range over seeds. {condition}.")


def _save(results: Results, figure: Figure, name: str, caption: str) -> Picture:
    path = save_figure(figure, results.folder / "figures" / name)
    path.with_suffix(".svg").unlink()  # one file per figure is enough in the documentation
    return Picture(path, caption)


Points = Sequence[tuple[float, float]]
Sweep = Mapping[str, Mapping[str, Points]]
"""By system and weight: aggregate KL and reconstruction error of every run."""

_LABELS = (
    (-6, -11, "right"),
    (6, 5, "left"),
    (6, -11, "left"),
)  # where a system's weights are written: points to the right, up


def weight_sweeps(sweeps: Mapping[str, Sweep]) -> Figure:
    """One panel per dataset; a marker for the mean at each weight, small ones for single runs, the weight beside it."""
    figure, axes = panels(len(sweeps), 2 if len(sweeps) == 4 else 3, 3.3, 2.9)
    for ax, (title, sweep) in zip(axes, sweeps.items(), strict=True):
        for number, (system, by_weight) in enumerate(sweep.items()):
            _draw(ax, number, system, by_weight)
        ax.set_title(title, fontsize=SMALL + 2)
        ax.set_xscale("symlog", linthresh=0.1)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.ticklabel_format(axis="y", useOffset=False)
        ax.margins(0.2)
        ax.set_xlabel("aggregate KL (nats)")
        ax.set_ylabel("reconstruction (nats)")
        ax.grid(alpha=0.25)
    legend_below(figure, axes[0])
    return figure


def _draw(ax: Axes, number: int, system: str, by_weight: Mapping[str, Points]) -> None:
    colour, marker = point_style(number)
    means = np.array([np.mean(runs, axis=0) for runs in by_weight.values()])
    ax.plot(*means.T, color=colour, marker=marker, markersize=6, linewidth=1.0, label=system)
    for runs in by_weight.values():
        ax.plot(*np.transpose(runs), marker, color=colour, alpha=0.45, markersize=3)
    across, up, side = _LABELS[number % len(_LABELS)]
    for weight, mean in zip(by_weight, means, strict=True):
        ax.annotate(weight, mean, (across, up), textcoords="offset points", ha=side, fontsize=SMALL, color=colour)
