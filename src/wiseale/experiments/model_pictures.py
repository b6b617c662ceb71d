"""The figures of trained models: of their codes, and of what they decode, as it suits tables, signals or images."""

from __future__ import annotations

from collections.abc import Mapping

from wiseale.evaluation.encoded import OpenRun
from wiseale.experiments.code_pictures import map_picture, posterior_pictures
from wiseale.experiments.decoded_pictures import decoded_pictures
from wiseale.experiments.saved_figure import Folder, SavedFigure
from wiseale.experiments.table_pictures import table_pictures

POINTS_SHOWN = 3000


def model_pictures(folder: Folder, runs: Mapping[str, OpenRun], seed: int, *, brief: bool = False) -> list[SavedFigure]:
    """Draw every figure that applies; ``brief`` draws reconstructions, samples, traversals and the latent map alone."""
    all_rows = {name: run.all_rows(POINTS_SHOWN) for name, run in runs.items()}
    some = next(iter(all_rows.values()))
    unseen = some.unseen is None or some.unseen.any()
    models = {name: run.unseen(POINTS_SHOWN) for name, run in runs.items()} if unseen else all_rows
    if len(some.model.x_shape) == 1:
        decoded = table_pictures(folder, all_rows, seed, brief=brief)
    else:
        decoded = decoded_pictures(folder, models, seed, brief=brief)
    posteriors = [] if brief else posterior_pictures(folder, models, all_rows)
    return [*decoded, *posteriors, map_picture(folder, all_rows)]
