"""The pictures of trained models: training curves, the codes, and what they decode, as it suits the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from wiseale.data import Dataset
from wiseale.data.tables.raw import MISSING_WORDS, as_word
from wiseale.errors import counted
from wiseale.evaluation.encoded import Encoded, encode_run
from wiseale.figures.decoded import spread_rows, widest_units
from wiseale.figures.decoded_pictures import Models, decoded_pictures, table_pictures
from wiseale.figures.factor import MAX_CLASSES, Factor
from wiseale.figures.latent_map import PlaneCodes, latent_map, posterior_contours
from wiseale.figures.style import Folder, SavedFigure, legend_below, line_style, new_figure, point_style
from wiseale.figures.words import objective_in_words
from wiseale.runs.run import Run
from wiseale.training.loop import EpochRecord

POINTS_SHOWN = 3000
BATCH_SHOWN = 64
STANDARD = ("latent_map", "reconstructions", "traversals", "prior_samples", "training_curves")
"""The pictures that every finished run has in its directory."""

_TERMS = {"reconstruction": "reconstruction error", "kl_posterior_prior": "AEVB KL", "elbo": "ELBO"}


def run_pictures(path: Path, dataset: Dataset | None = None) -> list[Path]:
    """Draw the standard pictures of a finished run, as PNG, unless they are there; returns their paths.

    ``dataset`` is the run's own, where it is in memory already.
    """
    run = Run.open(path, dataset=dataset)
    pictures = [run.figures / f"{name}.png" for name in STANDARD]
    if not all(picture.exists() for picture in pictures):
        folder = Folder(run.figures, svg=False)
        run_curves(folder, run.history)
        name = objective_in_words(run.settings.spec("objective"))
        model_pictures(folder, {name: run}, run.settings.seed, brief=True)
    return pictures


def run_curves(folder: Folder, metrics: Sequence[EpochRecord]) -> SavedFigure:
    """Draw the terms of one run by epoch, on the rows learned from and on those held out."""
    held_out = [replace(record, train=record.held_out) for record in metrics if record.held_out]
    lines = {"rows learned from": [metrics]} | ({"rows held out": [held_out]} if held_out else {})
    caption = "Training: reconstruction error, AEVB KL and ELBO by epoch, nats per observation."
    return folder.save(training_curves(lines), "training_curves", caption)


def training_curves(systems: Mapping[str, Sequence[Sequence[EpochRecord]]]) -> Figure:
    """Reconstruction error, AEVB KL and ELBO by epoch (the paper's Figure 6), from the epochs of each system's runs.

    One line per system, the mean over its runs, with a band over their range, up to the epoch that all reached. A
    system without a term (a deterministic encoder has no KL) has no line in that panel.
    """
    figure = new_figure(9.5, 2.9)
    axes = figure.subplots(1, len(_TERMS), squeeze=False)[0]
    for (term, title), ax in zip(_TERMS.items(), axes, strict=True):
        for number, (name, runs) in enumerate(systems.items()):
            by_epoch = [epoch for epoch in zip(*runs, strict=False) if all(term in run.train for run in epoch)]
            epochs = [epoch[0].epoch for epoch in by_epoch]
            values = [[run.train[term] for run in epoch] for epoch in by_epoch]
            mean = [sum(of_runs) / len(of_runs) for of_runs in values]
            colour, dash = line_style(number)
            marker = point_style(number)[1] if len(epochs) == 1 else None  # a line through one point is invisible
            ax.plot(epochs, mean, color=colour, linestyle=dash, linewidth=1.6, marker=marker, label=name)
            if len(runs) > 1:
                low, high = [*map(min, values)], [*map(max, values)]
                ax.fill_between(epochs, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.set_title(f"{title} (nats)", fontsize=10)
        ax.set_xlabel("epoch")
        ax.grid(alpha=0.25)
        ax.xaxis.get_major_locator().set_params(integer=True)
        if all(len(records) == 1 for runs in systems.values() for records in runs):
            ax.set_xticks([1])
    legend_below(figure, axes[0])
    return figure


def model_pictures(folder: Folder, runs: Mapping[str, Run], seed: int, *, brief: bool = False) -> list[SavedFigure]:
    """Draw every figure that applies; ``brief`` draws reconstructions, samples, traversals and the latent map alone.

    The map shows all rows, or in a comparison the unseen ones, if there are as many as a map shows.
    """
    all_rows = {name: encode_run(run, "all rows", POINTS_SHOWN) for name, run in runs.items()}
    some = next(iter(all_rows.values()))
    unseen = some.unseen is None or some.unseen.any()
    models = {name: encode_run(run, "unseen", POINTS_SHOWN) for name, run in runs.items()} if unseen else all_rows
    if len(some.model.x_shape) == 1:
        pictures = table_pictures(folder, all_rows, seed, brief=brief)
    else:
        pictures = decoded_pictures(folder, models, seed, brief=brief)
    if not brief and any(one.model.latent_dim == 2 for one in models.values()):
        pictures.append(_posteriors(folder, models, all_rows))
    many = len(next(iter(models.values())).rows) >= POINTS_SHOWN
    return [*pictures, _map(folder, models if many and not brief else all_rows)]


def _posteriors(folder: Folder, models: Models, all_rows: Models) -> SavedFigure:
    """Draw posteriors of some rows in 2-D latent spaces: of unseen ones, if there are enough."""
    plane = {name: one for name, one in models.items() if one.model.latent_dim == 2}
    enough = len(next(iter(plane.values())).rows) >= BATCH_SHOWN
    posteriors = {}
    for name in plane:
        one = (models if enough else all_rows)[name]
        rows = spread_rows(BATCH_SHOWN if enough else len(one.rows), BATCH_SHOWN)
        q = one.posterior[torch.from_numpy(rows)]
        posteriors[name] = (q.mu.numpy(), q.scale.numpy() if one.model.stochastic else None)
    points = "" if all(one.model.stochastic for one in plane.values()) else " A deterministic encoder has means only."
    caption = (
        f"Posteriors of {len(q)} {'unseen inputs' if enough else 'inputs'}: means, 1- and 2-σ ellipses, over the root "
        f"of their average density.{points} Each panel has its own scale: the dashed circle has radius 2 in all."
    )
    return folder.save(posterior_contours(posteriors), "posteriors", caption)


def _map(folder: Folder, models: Models) -> SavedFigure:
    """Draw a map of the codes, coloured by the first factor if there is any, else by a table's first category."""
    some = next(iter(models.values()))
    maps = {}
    for name, one in models.items():
        mu = one.posterior.mu.numpy()
        units = widest_units(mu, 2)
        maps[name] = PlaneCodes(mu[:, list(units)], units, one.unseen, most_active_of=one.model.latent_dim)
    factor = _factor(some)
    which = "" if some.model.latent_dim <= 2 else ", in the two units that vary most"
    by = f" by {factor.name}" if factor else ""
    marked = maps[next(iter(maps))].marked
    edge = f"; the {marked.sum():,} that were not learned from have a black edge" if marked.any() else ""
    scale = "The dashed circle has radius 2" + (" in all: each panel has its own scale." if len(maps) > 1 else ".")
    rows = counted(len(some.rows), f"{'unseen ' if some.unseen is None else ''}row")
    caption = f"Mean codes of {rows}{by}{which}{edge}. {scale if some.model.latent_dim > 1 else ''}"
    return folder.save(latent_map(maps, factor), "latent_map", caption.strip())


def _factor(one: Encoded) -> Factor | None:
    if one.factors:
        name, values = next(iter(one.factors.items()))
        values = np.asarray(values)
        if one.codec.space.names and values.dtype.kind == "U":  # a label column, read as the file writes it
            values = np.array([None if word.strip().lower() in MISSING_WORDS else word for word in values], object)
        return Factor(name, values, name in one.circular)
    for i, column in enumerate(one.codec.space.columns if one.codec.space.missing else ()):
        if column.has_levels and 1 < len(column.levels) <= MAX_CLASSES:
            words = column.decode(one.rows.x[:, i].astype(np.float64))
            known = [None if word is None or word != word else as_word(word) for word in words]
            return Factor(column.name, np.array(known, object))
    return None
