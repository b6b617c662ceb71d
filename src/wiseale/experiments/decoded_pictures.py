"""Figures of decoded codes: reconstructions, prior samples, interpolations, traversals, and a 2-D latent grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from wiseale.evaluation.encoded import Encoded
from wiseale.experiments.saved_figure import Models, SavedFigure, save_with_caption
from wiseale.figures.image_rows import image_rows
from wiseale.figures.manifold import manifold_grid
from wiseale.figures.mosaic import Values
from wiseale.figures.reconstructions import reconstructions
from wiseale.figures.traversals import Traversal, traversals
from wiseale.posterior import PointPosterior
from wiseale.randomness import generator

COLUMNS = 8
STEPS = 7  # of a traversal of images; 5 for signals, which are drawn over each other
MAX_UNITS = 5
REACH = 2.0  # standard deviations on either side of the mean
GRID = 10


@torch.no_grad()
def decoded_pictures(figures: Path, models: Models, seed: int) -> list[SavedFigure]:
    """Draw every figure that applies to the models."""
    made = [_reconstructions(figures, models), _samples(figures, models, seed)]
    if len(next(iter(models.values())).rows) > 1:
        made.append(_interpolations(figures, models))
    made.append(_traversals(figures, models))
    plane = {name: one for name, one in models.items() if one.model.latent_dim == 2 and one.model.prior is None}
    return [*made, _manifold(figures, plane)] if plane else made


def _reconstructions(figures: Path, models: Models) -> SavedFigure:
    some = next(iter(models.values()))
    chosen = spread_rows(some)
    x = shown(some, some.read(chosen))
    x_hat = {name: shown(one, one.model.decode(one.posterior.mu[chosen]).mean) for name, one in models.items()}
    how = "Unseen inputs and their reconstructions from the mean code"
    how += "." if x.ndim == 4 else " (coloured, over the input in grey)."
    return save_with_caption(reconstructions(x, x_hat), figures, "reconstructions", how)


def _samples(figures: Path, models: Models, seed: int) -> SavedFigure:
    rows = {}
    for name, one in models.items():
        z = one.model.sample_prior(COLUMNS, generator(seed, "evaluate", 7))
        rows[name] = shown(one, one.model.decode(z).mean)
    return save_with_caption(
        image_rows(rows), figures, "prior_samples", "New data: codes drawn from each model's prior, decoded."
    )


def _interpolations(figures: Path, models: Models) -> SavedFigure:
    start, end = (int(row) for row in spread_rows(next(iter(models.values())))[[1, -2]])
    rows = {}
    for name, one in models.items():
        steps = torch.linspace(0, 1, COLUMNS)[:, None]
        path = one.posterior.mu[start] * (1 - steps) + one.posterior.mu[end] * steps
        rows[name] = shown(one, one.model.decode(path).mean)
    caption = "A straight path in latent space between the mean codes of two unseen inputs, decoded."
    return save_with_caption(image_rows(rows), figures, "interpolations", caption)


def _traversals(figures: Path, models: Models) -> SavedFigure:
    rows = spread_rows(next(iter(models.values())))
    row = int(rows[len(rows) // 2])
    made = {name: traversal(one, row) for name, one in models.items()}
    most = max(one.model.latent_dim for one in models.values())
    which = f"the {MAX_UNITS} units whose means vary most" if most > MAX_UNITS else "every unit"
    caption = (
        f"Traversals from the mean code of one unseen input: {which}, one at a time, over {REACH:g} standard "
        "deviations of the codes on either side of their mean, the others unchanged"
        f"{'.' if next(iter(made.values())).values.ndim == 5 else '; from dark (low) to light (high).'}"
    )
    return save_with_caption(traversals(made), figures, "traversals", caption)


def traversal(one: Encoded, row: int) -> Traversal:
    """Traversals from the code of one row: each unit over mean ± ``REACH``·s of its codes, s² = Var mu + mean sigma².

    Of more than ``MAX_UNITS`` units, those whose means vary most are shown, in their order in the code.
    """
    q = one.posterior
    variance = q.mu.var(0, correction=0)
    spread = variance if isinstance(q, PointPosterior) else variance + q.sigma.square().mean(0)
    units = variance.argsort(descending=True)[:MAX_UNITS].sort().values.tolist()
    steps = STEPS if len(one.model.x_shape) == 3 else 5
    codes = q.mu[row].repeat(len(units), steps, 1)
    for place, unit in enumerate(units):
        codes[place, :, unit] = q.mu[:, unit].mean() + spread[unit].sqrt() * torch.linspace(-REACH, REACH, steps)
    values = shown(one, one.model.decode(codes.flatten(0, 1)).mean)
    return Traversal(tuple(f"z{unit + 1}" for unit in units), values.reshape(len(units), steps, *values.shape[1:]))


def _manifold(figures: Path, models: Models) -> SavedFigure:
    codes = prior_grid(GRID)
    grids = {}
    for name, one in models.items():
        values = shown(one, one.model.decode(codes.flatten(0, 1)).mean)
        grids[name] = values.reshape(GRID, GRID, *values.shape[1:])
    caption = (
        f"The 2-D latent space decoded on a grid of {GRID} by {GRID} codes at equal steps of the prior's probability: "
        "every picture stands for as much of the prior as any other."
    )
    return save_with_caption(manifold_grid(grids), figures, "manifold_grid", caption)


def prior_grid(n: int) -> Tensor:
    """Codes (n, n, 2) at the centres of cells of equal prior mass; z2 grows from row to row, z1 along a row.

    >>> prior_grid(3)[0, :, 0]
    tensor([-0.9674,  0.0000,  0.9674])
    """
    axis = torch.special.ndtri((torch.arange(n) + 0.5) / n)
    second, first = torch.meshgrid(axis, axis, indexing="ij")
    return torch.stack((first, second), -1)


def spread_rows(encoded: Encoded) -> Tensor:
    """Indices of ``COLUMNS`` rows, evenly spaced by rank of the first factor, or in the data if there is no factor."""
    n = len(encoded.rows)
    order = np.arange(n)
    if encoded.factors:
        order = np.argsort(np.asarray(next(iter(encoded.factors.values()))), kind="stable")
    return torch.from_numpy(order[np.linspace(0, n - 1, min(COLUMNS, n)).astype(int)])


def shown(encoded: Encoded, x: Tensor) -> Values:
    """x in the user's units, as images (n, C, H, W) or signals (n, C, L); a table's row becomes a signal."""
    values: Values = encoded.codec.in_user_units(x).numpy().astype(np.float32, copy=False)
    return values[:, None] if values.ndim == 2 else values
