"""The figures of trained models: of their codes, and of what they decode, as it suits tables, signals or images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from wiseale.data import Dataset
from wiseale.evaluation.encoded import encode_run
from wiseale.experiments.code_pictures import map_picture, posterior_pictures
from wiseale.experiments.decoded_pictures import decoded_pictures
from wiseale.experiments.saved_figure import Folder, SavedFigure
from wiseale.experiments.table_pictures import table_pictures
from wiseale.experiments.words import objective_in_words
from wiseale.figures.curves import training_curves
from wiseale.runs.run import Run
from wiseale.training.records import EpochRecord

POINTS_SHOWN = 3000
STANDARD = ("latent_map", "reconstructions", "traversals", "prior_samples", "training_curves")
"""The pictures that every finished run has in its directory."""


def run_pictures(path: Path, dataset: Dataset | None = None) -> list[Path]:
    """Draw the standard pictures of a finished run, as PNG, unless they are there; returns their paths.

    ``dataset`` is the run's own, where it is in memory already.
    """
    run = Run.open(path, dataset=dataset)
    made = [run.directory.figures / f"{name}.png" for name in STANDARD]
    if not all(picture.exists() for picture in made):
        folder = Folder(run.directory.figures, svg=False)
        run_curves(folder, run.history)
        name = objective_in_words(run.settings.spec("objective"))
        model_pictures(folder, {name: run}, run.settings.seed, brief=True)
    return made


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
