"""Figures of the latent space: posteriors of a batch, and scatter plots of many codes."""

from __future__ import annotations

import numpy as np

from wiseale.data.tables.raw import MISSING_WORDS, as_word
from wiseale.errors import counted
from wiseale.evaluation.encoded import Encoded
from wiseale.experiments.saved_figure import Folder, Models, SavedFigure
from wiseale.figures.factor import MAX_CLASSES, Factor
from wiseale.figures.latent_map import PlaneCodes, latent_map
from wiseale.figures.posteriors import posterior_contours
from wiseale.figures.shown_codes import spread_rows, widest_units

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
        codes[name] = (mu, one.posterior.sigma[rows].numpy() if one.model.stochastic else None)
    points = "" if all(one.model.stochastic for one in plane.values()) else " A deterministic encoder has means only."
    caption = (
        f"Posteriors of {len(mu)} {'unseen inputs' if enough else 'inputs'}: means, 1- and 2-σ ellipses, over the root "
        f"of their average density.{points} Each panel has its own scale: the dashed circle has radius 2 in all."
    )
    return [folder.save(posterior_contours(codes), "posteriors", caption)]


def map_picture(folder: Folder, models: Models) -> SavedFigure:
    """Draw a map of the codes, coloured by the first factor if there is any, else by a table's first category."""
    some = next(iter(models.values()))
    made = {name: plane_codes(one) for name, one in models.items()}
    factor = _factor(some)
    which = "" if some.model.latent_dim <= 2 else ", in the two units that vary most"
    by = f" by {factor.name}" if factor else ""
    marked = made[next(iter(made))].marked
    edge = f"; the {marked.sum():,} that were not learned from have a black edge" if marked.any() else ""
    scale = "The dashed circle has radius 2" + (" in all: each panel has its own scale." if len(made) > 1 else ".")
    rows = counted(len(some.rows), f"{'unseen ' if some.unseen is None else ''}row")
    caption = f"Mean codes of {rows}{by}{which}{edge}. {scale if some.model.latent_dim > 1 else ''}"
    return folder.save(latent_map(made, factor), "latent_map", caption.strip())


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
