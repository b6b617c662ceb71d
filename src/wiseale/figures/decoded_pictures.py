"""Figures of decoded images and signals: reconstructions, samples, interpolations, traversals, a 2-D latent grid."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from wiseale.evaluation.encoded import Encoded
from wiseale.figures import shown_codes
from wiseale.figures.decoded import Traversal, Values, as_pixels, image_rows, manifold_grid, reconstructions, traversals
from wiseale.figures.shown_codes import MAX_UNITS, REACH, traversal_codes, widest_units
from wiseale.figures.style import Folder, SavedFigure
from wiseale.randomness import generator

Models = Mapping[str, Encoded]
"""System name → the encoded rows of one of its runs; all systems encode the same rows."""

COLUMNS = 8
STEPS = 7  # of a traversal of images; 5 for signals, which are drawn over each other
GRID = 10
_RANGE_ROWS = 1000  # rows whose smallest and largest value are drawn black and white


@torch.no_grad()
def decoded_pictures(folder: Folder, models: Models, seed: int, *, brief: bool = False) -> list[SavedFigure]:
    """Draw every figure that applies to the models; ``brief`` leaves out interpolations and the 2-D grid."""
    pictures = [_reconstructions(folder, models), _samples(folder, models, seed), _traversals(folder, models)]
    if brief:
        return pictures
    if len(next(iter(models.values())).rows) > 1:
        pictures.insert(2, _interpolations(folder, models))
    plane = {name: one for name, one in models.items() if one.model.latent_dim == 2 and one.model.prior is None}
    return [*pictures, _manifold(folder, plane)] if plane else pictures


def _reconstructions(folder: Folder, models: Models) -> SavedFigure:
    some = next(iter(models.values()))
    rows = spread_rows(some)
    x = drawable(some, some.read(rows))
    x_hat = {name: drawable(one, one.model.decode(one.posterior.mu[rows]).mean) for name, one in models.items()}
    how = f"{_unseen(some)}inputs and their reconstructions from the mean code".capitalize()
    how += "." if x.ndim == 4 else " (coloured, over the input in grey)."
    return folder.save(reconstructions(x, x_hat), "reconstructions", how)


def _samples(folder: Folder, models: Models, seed: int) -> SavedFigure:
    rows = {}
    for name, one in models.items():
        z = one.model.sample_prior(COLUMNS, generator(seed, "evaluate", 7))
        rows[name] = drawable(one, one.model.decode(z).mean)
    return folder.save(image_rows(rows), "prior_samples", "New data: codes drawn from each model's prior, decoded.")


def _interpolations(folder: Folder, models: Models) -> SavedFigure:
    start, end = (int(row) for row in spread_rows(next(iter(models.values())))[[1, -2]])
    rows = {}
    for name, one in models.items():
        steps = torch.linspace(0, 1, COLUMNS)[:, None]
        path = one.posterior.mu[start] * (1 - steps) + one.posterior.mu[end] * steps
        rows[name] = drawable(one, one.model.decode(path).mean)
    unseen = _unseen(next(iter(models.values())))
    caption = f"A straight path in latent space between the mean codes of two {unseen}inputs, decoded."
    return folder.save(image_rows(rows), "interpolations", caption)


def _traversals(folder: Folder, models: Models) -> SavedFigure:
    rows = spread_rows(next(iter(models.values())))
    row = int(rows[len(rows) // 2])
    by_system = {name: traversal(one, row) for name, one in models.items()}
    unseen = _unseen(next(iter(models.values())))
    most = max(one.model.latent_dim for one in models.values())
    which = f"the {MAX_UNITS} units whose means vary most" if most > MAX_UNITS else "every unit"
    caption = (
        f"Traversals from the mean code of one {unseen}input: {which}, one at a time, over {REACH:g} standard "
        "deviations of the codes on either side of their mean, the others unchanged"
        f"{'.' if next(iter(by_system.values())).values.ndim == 5 else '; from dark (low) to light (high).'}"
    )
    return folder.save(traversals(by_system), "traversals", caption)


def traversal(one: Encoded, row: int) -> Traversal:
    """Traversals from the code of one row, see :func:`~wiseale.figures.shown_codes.traversal_codes`."""
    mu = one.posterior.mu.numpy()
    sigma = None if one.posterior.sigma is None else one.posterior.sigma.numpy()
    units = widest_units(mu, MAX_UNITS)
    steps = STEPS if len(one.model.x_shape) == 3 else 5
    codes = torch.from_numpy(traversal_codes(mu, sigma, mu[row], units, steps))
    values = drawable(one, one.model.decode(codes.flatten(0, 1)).mean)
    return Traversal(tuple(f"z{unit + 1}" for unit in units), values.reshape(len(units), steps, *values.shape[1:]))


def _manifold(folder: Folder, models: Models) -> SavedFigure:
    codes = prior_grid(GRID)
    grids = {}
    for name, one in models.items():
        values = drawable(one, one.model.decode(codes.flatten(0, 1)).mean)
        grids[name] = values.reshape(GRID, GRID, *values.shape[1:])
    caption = (
        f"The 2-D latent space decoded on a grid of {GRID} by {GRID} codes at equal steps of the prior's probability: "
        "every picture stands for as much of the prior as any other."
    )
    return folder.save(manifold_grid(grids), "manifold_grid", caption)


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
    factor = next(iter(encoded.factors.values()), None)
    rows = shown_codes.spread_rows(len(encoded.rows), COLUMNS, None if factor is None else np.asarray(factor))
    return torch.from_numpy(rows)


def _unseen(encoded: Encoded) -> str:
    """``"unseen "``, unless the run held nothing out and the rows are those it learned from."""
    return "unseen " if encoded.unseen is None else ""


def drawable(encoded: Encoded, x: Tensor) -> Values:
    """x in the user's units, as signals (n, C, L) or images (n, C, H, W) from 0 to 1."""
    values: Values = encoded.codec.in_user_units(x).numpy().astype(np.float32, copy=False)
    if values.ndim < 4 or encoded.rows.reading != "values":
        return values
    return as_pixels(values, encoded.rows.x[:_RANGE_ROWS].astype(np.float32))
