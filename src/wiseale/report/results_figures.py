"""The paper's figures 1, 4, 5 and 6 and the sweep of the weight, drawn from kept results."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from wiseale import registry
from wiseale.experiments import systems as s
from wiseale.experiments.bounds.toy import read_table
from wiseale.experiments.bounds.toy_figures import figure4
from wiseale.experiments.paper.evidence import conditions_of
from wiseale.experiments.paper.results import IN_FIGURE_6, Results
from wiseale.experiments.paper.run_rows import Condition, RunRow
from wiseale.experiments.paper.sweep import sweep_points
from wiseale.figures.curves import training_curves
from wiseale.figures.posteriors import posterior_contours
from wiseale.figures.reconstructions import reconstructions
from wiseale.figures.style import save_figure
from wiseale.figures.weight_sweep import weight_sweeps
from wiseale.report.document import Picture
from wiseale.report.toy import FIGURES

FIGURE_1 = (s.WAE_MMD_GAUSSIAN, s.WISE_ALE, s.AEVB, s.BETA_VAE)
FIGURE_5 = (s.AEVB, s.BETA_VAE, s.WAE_MMD, s.WISE_ALE, s.WISE_ALE_AS_WRITTEN)
_FIGURES_5 = {"figure5a": "sine", "figure5b": "celeba"}


def draw_weights(results: Results, rows: Sequence[RunRow], scale: str) -> Picture | None:
    """Reconstruction against aggregate KL as the weight rises; None before two weights of a system have been run."""
    found = conditions_of(rows, scale)
    sweeps = {name: sweep_points(rows, found[name][0]) for name in registry.EXPERIMENTS if name in found}
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
    conditions = {experiment: found[0] for experiment, found in conditions_of(rows, scale).items()}
    made = [
        _figure_1(results, conditions.get("mnist")),
        _figure_4(results, scale),
        *(_figure_5(results, name, conditions.get(experiment)) for name, experiment in _FIGURES_5.items()),
        _figure_6(results, conditions.get("sine")),
    ]
    return [picture for picture in made if picture is not None]


def _figure_1(results: Results, condition: Condition | None) -> Picture | None:
    arrays = results.arrays(condition) if condition else None
    if arrays is None:
        return None
    known = [system.name for system in FIGURE_1 if system.name in arrays.systems]
    if not known:
        return None
    figure = posterior_contours({name: (arrays.systems[name].mu, arrays.systems[name].sigma) for name in known})
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
    known = [system.name for system in FIGURE_5 if system.name in arrays.systems]
    if not known:
        return None
    figure = reconstructions(arrays.x, {name: arrays.systems[name].x_hat for name in known})
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
    figure = training_curves({name: found for name, found in runs.items() if found})
    return _save(results, figure, "figure6", f"Figure 6. Training curves, mean and range over seeds. {condition}.")


def _save(results: Results, figure: Figure, name: str, caption: str) -> Picture:
    path = save_figure(figure, results.folder / "figures" / name)
    path.with_suffix(".svg").unlink()  # one file per figure is enough in the documentation
    return Picture(path, caption)
