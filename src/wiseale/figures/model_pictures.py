"""The figures of trained models: of their codes, and of what they decode, as it suits tables, signals or images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from wiseale.data import Dataset
from wiseale.data.tables.raw import MISSING_WORDS, as_word
from wiseale.errors import counted
from wiseale.evaluation.encoded import Encoded, encode_run
from wiseale.figures.curves import training_curves
from wiseale.figures.decoded_pictures import Models, decoded_pictures
from wiseale.figures.factor import MAX_CLASSES, Factor
from wiseale.figures.latent_map import PlaneCodes, latent_map
from wiseale.figures.posteriors import posterior_contours
from wiseale.figures.shown_codes import spread_rows, widest_units
from wiseale.figures.style import Folder, SavedFigure
from wiseale.figures.table_pictures import table_pictures
from wiseale.figures.words import objective_in_words
from wiseale.runs.run import Run
from wiseale.training.loop import EpochRecord

POINTS_SHOWN = 3000
STANDARD = ("latent_map", "reconstructions", "traversals", "prior_samples", "training_curves")
"""The pictures that every finished run has in its directory."""


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


def model_pictures(folder: Folder, runs: Mapping[str, Run], seed: int, *, brief: bool = False) -> list[SavedFigure]:
    """Draw every figure that applies; ``brief`` draws reconstructions, samples, traversals and the latent map alone.

    The map shows all rows, or in a comparison the unseen ones, if there are as many as a map shows.
    """
    all_rows = {name: encode_run(run, "all rows", POINTS_SHOWN) for name, run in runs.items()}
    some = next(iter(all_rows.values()))
    unseen = some.unseen is None or some.unseen.any()
    models = {name: encode_run(run, "unseen", POINTS_SHOWN) for name, run in runs.items()} if unseen else all_rows
    if len(some.model.x_shape) == 1:
        decoded = table_pictures(folder, all_rows, seed, brief=brief)
    else:
        decoded = decoded_pictures(folder, models, seed, brief=brief)
    posteriors = [] if brief else posterior_pictures(folder, models, all_rows)
    many = len(next(iter(models.values())).rows) >= POINTS_SHOWN
    return [*decoded, *posteriors, map_picture(folder, models if many and not brief else all_rows)]


BATCH_SHOWN = 64


def posterior_pictures(folder: Folder, models: Models, all_rows: Models) -> list[SavedFigure]:
    """Draw posteriors of some rows if the latent space has two dimensions: of unseen ones, if there are enough."""
    plane = {name: one for name, one in models.items() if one.model.latent_dim == 2}
    if not plane:
        return []
    enough = len(next(iter(plane.values())).rows) >= BATCH_SHOWN
    codes = {}
    for name in plane:
        one = (models if enough else all_rows)[name]
        rows = np.arange(BATCH_SHOWN) if enough else spread_rows(len(one.rows), BATCH_SHOWN)
        mu = one.posterior.mu[rows].numpy()
        codes[name] = (mu, one.posterior.scale[rows].numpy() if one.model.stochastic else None)
    points = "" if all(one.model.stochastic for one in plane.values()) else " A deterministic encoder has means only."
    caption = (
        f"Posteriors of {len(mu)} {'unseen inputs' if enough else 'inputs'}: means, 1- and 2-σ ellipses, over the root "
        f"of their average density.{points} Each panel has its own scale: the dashed circle has radius 2 in all."
    )
    return [folder.save(posterior_contours(codes), "posteriors", caption)]


def map_picture(folder: Folder, models: Models) -> SavedFigure:
    """Draw a map of the codes, coloured by the first factor if there is any, else by a table's first category."""
    some = next(iter(models.values()))
    maps = {name: plane_codes(one) for name, one in models.items()}
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
        name = next(iter(one.factors))
        values = np.asarray(one.factors[name])
        if one.codec.space.names and values.dtype.kind == "U":  # a label column, read as the file writes it
            values = np.array([None if word.strip().lower() in MISSING_WORDS else word for word in values], object)
        return Factor(name, values, name in one.circular)
    for i, column in enumerate(one.codec.space.columns if one.codec.space.missing else ()):
        if column.has_levels and 1 < len(column.levels) <= MAX_CLASSES:
            words = column.decode(one.rows.x[:, i].astype(np.float64))
            return Factor(
                column.name,
                np.array([None if word is None or word != word else as_word(word) for word in words], object),
            )
    return None


def plane_codes(one: Encoded) -> PlaneCodes:
    """Mean codes in the plane of the two units that vary most."""
    mu = one.posterior.mu.numpy()
    units = widest_units(mu, 2)
    return PlaneCodes(mu[:, list(units)], units, one.unseen, most_active_of=one.model.latent_dim)
