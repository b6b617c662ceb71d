"""Figures of the latent space: posteriors of a batch, and scatter plots of many codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wiseale.experiments.saved_figure import Models, SavedFigure, save_with_caption
from wiseale.figures.latent_map import PlaneCodes, latent_map
from wiseale.figures.posteriors import posterior_contours

BATCH_SHOWN = 64


def code_pictures(figures: Path, models: Models) -> list[SavedFigure]:
    """Draw posteriors if the latent space has two dimensions, and a map of the codes if the rows have a factor."""
    plane = {name: one for name, one in models.items() if one.model.latent_dim == 2}
    made = [_contours(figures, plane)] if plane else []
    wide = {name: one for name, one in models.items() if one.model.latent_dim >= 2}
    return [*made, _map(figures, wide)] if wide and next(iter(wide.values())).factors else made


def _contours(figures: Path, models: Models) -> SavedFigure:
    codes = {}
    for name, one in models.items():
        mu = one.posterior.mu[:BATCH_SHOWN].numpy()
        codes[name] = (mu, one.posterior.sigma[:BATCH_SHOWN].numpy() if one.model.stochastic else None)
    points = "" if all(one.model.stochastic for one in models.values()) else " A deterministic encoder has means only."
    caption = (
        f"Posteriors of {len(mu)} unseen inputs: means, 1- and 2-σ ellipses, over the root of their average density."
        f"{points} Each panel has its own scale: the dashed circle has radius 2 in all."
    )
    return save_with_caption(posterior_contours(codes), figures, "posteriors", caption)


def _map(figures: Path, models: Models) -> SavedFigure:
    some = next(iter(models.values()))
    factor = next(iter(some.factors))
    made = {}
    for name, one in models.items():
        first, second = sorted(one.posterior.mu.var(0, correction=0).argsort(descending=True)[:2].tolist())
        made[name] = PlaneCodes(one.posterior.mu[:, [first, second]].numpy(), (first, second))
    figure = latent_map(made, np.asarray(some.factors[factor]), factor, factor in some.circular)
    which = "" if some.model.latent_dim == 2 else ", in the two units that vary most"
    caption = (
        f"Mean codes of {len(some.rows):,} unseen rows by {factor}{which}. Each panel has its own scale: the dashed "
        "circle has radius 2 in all."
    )
    return save_with_caption(figure, figures, "latent_map", caption)
