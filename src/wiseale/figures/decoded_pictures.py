"""The pictures of what trained models decode: reconstructions, samples, traversals and more, as it suits the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from wiseale.errors import counted
from wiseale.evaluation.encoded import Encoded
from wiseale.figures import decoded
from wiseale.figures.column_matrices import column_traversals, correlation_matrices
from wiseale.figures.columns import (
    MAX_COLUMNS,
    Levels,
    Table,
    column_distributions,
    column_reconstructions,
    deviations,
    panel_columns,
)
from wiseale.figures.decoded import MAX_UNITS, REACH, Traversal, Values, as_pixels, traversal_codes, widest_units
from wiseale.figures.style import Folder, SavedFigure
from wiseale.randomness import generator
from wiseale.spaces import TableSpace

Models = Mapping[str, Encoded]
"""System name → the encoded rows of one of its runs; all systems encode the same rows."""

COLUMNS = 8
STEPS = 7  # of a traversal of images; 5 for signals, which are drawn over each other, and tables
GRID = 10
SAMPLES = 2000  # of a table
_RANGE_ROWS = 1000  # rows whose smallest and largest value are drawn black and white


@torch.no_grad()
def decoded_pictures(folder: Folder, models: Models, seed: int, *, brief: bool = False) -> list[SavedFigure]:
    """Draw every figure of images or signals; ``brief`` leaves out interpolations and the 2-D grid."""
    some = next(iter(models.values()))
    rows, unseen = spread_rows(some), "" if some.unseen is not None else "unseen "
    x = drawable(some, some.read(rows))
    x_hat = {name: decode(one, one.posterior.mu[rows]) for name, one in models.items()}
    how = f"{unseen}inputs and their reconstructions from the mean code".capitalize()
    how += "." if x.ndim == 4 else " (coloured, over the input in grey)."
    pictures = [folder.save(decoded.reconstructions(x, x_hat), "reconstructions", how)]

    draws = {name: decode(one, _prior_codes(one, COLUMNS, seed)) for name, one in models.items()}
    caption = "New data: codes drawn from each model's prior, decoded."
    pictures.append(folder.save(decoded.image_rows(draws), "prior_samples", caption))
    if len(some.rows) > 1 and not brief:
        pictures.append(_interpolations(folder, models, rows[1], rows[-2], unseen))

    by_system = {name: traversal(one, int(rows[len(rows) // 2])) for name, one in models.items()}
    caption = (
        f"{_traversed(models, f'{unseen}input')}, the others unchanged"
        f"{'.' if x.ndim == 4 else '; from dark (low) to light (high).'}"
    )
    pictures.append(folder.save(decoded.traversals(by_system), "traversals", caption))
    plane = {name: one for name, one in models.items() if one.model.latent_dim == 2 and one.model.prior is None}
    return pictures if brief or not plane else [*pictures, _manifold(folder, plane)]


def _prior_codes(one: Encoded, n: int, seed: int) -> Tensor:
    return one.model.sample_prior(n, generator(seed, "evaluate", 7))


def _interpolations(folder: Folder, models: Models, start: Tensor, end: Tensor, unseen: str) -> SavedFigure:
    steps = torch.linspace(0, 1, COLUMNS)[:, None]
    mus = {name: one.posterior.mu for name, one in models.items()}
    rows = {name: decode(one, mus[name][start] * (1 - steps) + mus[name][end] * steps) for name, one in models.items()}
    caption = f"A straight path in latent space between the mean codes of two {unseen}inputs, decoded."
    return folder.save(decoded.image_rows(rows), "interpolations", caption)


def _traversed(models: Models, row: str) -> str:
    most = max(one.model.latent_dim for one in models.values())
    which = f"the {MAX_UNITS} units whose means vary most" if most > MAX_UNITS else "every unit"
    return (
        f"Traversals from the mean code of one {row}: {which}, one at a time, over {REACH:g} standard deviations of "
        "the codes on either side of their mean"
    )


def traversal(one: Encoded, row: int, entries: Sequence[int] | None = None) -> Traversal:
    """Traversals from the code of one row, see :func:`~wiseale.figures.decoded.traversal_codes`.

    Of a table, the values are the expected ``entries`` of a row.
    """
    mu, sigma = one.posterior.mu.numpy(), one.posterior.scale.numpy() if one.model.stochastic else None
    units = widest_units(mu, MAX_UNITS)
    steps = STEPS if len(one.model.x_shape) == 3 else 5
    codes = torch.from_numpy(traversal_codes(mu, sigma, mu[row], units, steps)).flatten(0, 1)
    if entries is None:
        values = decode(one, codes)
    else:
        values = one.codec.entry_units.inverse(one.model.decode(codes).expected.cpu()).numpy()[:, entries]
    return Traversal(tuple(f"z{unit + 1}" for unit in units), values.reshape(len(units), steps, *values.shape[1:]))


def _manifold(folder: Folder, models: Models) -> SavedFigure:
    codes = prior_grid(GRID).flatten(0, 1)
    grids = {name: decode(one, codes) for name, one in models.items()}
    grids = {name: values.reshape(GRID, GRID, *values.shape[1:]) for name, values in grids.items()}
    caption = (
        f"The 2-D latent space decoded on a grid of {GRID} by {GRID} codes at equal steps of the prior's probability: "
        "every picture stands for as much of the prior as any other."
    )
    return folder.save(decoded.manifold_grid(grids), "manifold_grid", caption)


def prior_grid(n: int) -> Tensor:
    """Codes (n, n, 2) at the centres of cells of equal prior mass; z2 grows from row to row, z1 along a row.

    >>> prior_grid(3)[0, :, 0]
    tensor([-0.9674,  0.0000,  0.9674])
    """
    axis = torch.special.ndtri((torch.arange(n) + 0.5) / n)
    second, first = torch.meshgrid(axis, axis, indexing="ij")
    return torch.stack((first, second), -1)


def spread_rows(encoded: Encoded, most: int = COLUMNS) -> Tensor:
    """Indices of ``most`` rows, evenly spaced by rank of the first factor, or in the data if there is no factor."""
    factor = next(iter(encoded.factors.values()), None)
    factor = None if factor is None else np.asarray(factor)
    return torch.from_numpy(decoded.spread_rows(len(encoded.rows), most, factor))


def decode(encoded: Encoded, codes: Tensor) -> Values:
    """The decoded means of codes, see :func:`drawable`."""
    return drawable(encoded, encoded.model.decode(codes).mean)


def drawable(encoded: Encoded, x: Tensor) -> Values:
    """x in the user's units, as signals (n, C, L) or images (n, C, H, W) from 0 to 1."""
    values: Values = encoded.codec.in_user_units(x).numpy().astype(np.float32, copy=False)
    if values.ndim < 4 or encoded.rows.reading != "values":
        return values
    return as_pixels(values, encoded.rows.x[:_RANGE_ROWS].astype(np.float32))


@torch.no_grad()
def table_pictures(folder: Folder, models: Models, seed: int, *, brief: bool = False) -> list[SavedFigure]:
    """Draw every figure of a table; ``brief`` leaves out the correlations."""
    some = next(iter(models.values()))
    space = some.codec.space
    assert isinstance(space, TableSpace)
    columns, levels, mixed = space.names, space.levels, any(space.levels)
    x = np.concatenate([_cells(some, block) for block, _ in some.blocks()])
    panels, n = len(panel_columns(x)), x.shape[1]
    panel_note = "" if panels == n else f" ({panels} of {n} columns: the figure names the others)"
    first = f" (the first {MAX_COLUMNS} of {n} columns)" if n > MAX_COLUMNS else ""
    shares = "; of a category, the probability of its most frequent levels" if mixed else ""

    samples = {name: _samples(one, seed) for name, one in models.items()}
    noise = "each cell drawn from its distribution" if levels else "decoded, without observation noise"
    bars = "; bars: the share of each level" if mixed else ""
    caption = (
        f"Each column of {counted(len(x), 'row')} of the data (grey) and of {SAMPLES:,} samples: "
        f"codes drawn from the model's prior, {noise}. Numbers in the units of the data, those beyond 3.5 standard "
        f"deviations counted at the ends{bars}{panel_note}."
    )
    figure = column_distributions(x, samples, columns, levels=levels)
    pictures = [
        _table_reconstructions(folder, models, x, columns, levels, panel_note),
        folder.save(figure, "prior_samples", caption),
    ]

    entries = space.likeliest_entries(x, MAX_COLUMNS)
    names = [space.entries[entry].name for entry in entries]
    row = int(spread_rows(some, 3)[min(1, len(x) - 1)])
    by_system = {name: traversal(one, row, entries) for name, one in models.items()}
    caption = (
        f"{_traversed(models, 'row')}. Numbers: the change of each column from the middle, in its own units; "
        f"colour: the same in standard deviations of the column{shares}{first}."
    )
    figure = column_traversals(by_system, deviations(space.expand(x)[:, entries]), names)
    pictures.append(folder.save(figure, "traversals", caption))
    if brief or len(entries) < 2:
        return pictures
    tables = {name: space.expand(values)[:, entries] for name, values in {"data": x, **samples}.items()}
    caption = f"Correlations between the columns of the data, and of the samples of each model{shares}{first}."
    return [*pictures, folder.save(correlation_matrices(tables, names), "correlations", caption)]


def _table_reconstructions(
    folder: Folder, models: Models, x: Table, columns: tuple[str, ...], levels: Levels, panel_note: str
) -> SavedFigure:
    x_hat = {name: _cells(one, one.model.decode(one.posterior.mu).mean) for name, one in models.items()}
    unseen = next(iter(models.values())).unseen
    marked = None if unseen is None or unseen.all() or not unseen.any() else unseen
    score = "R² and accuracy" if any(levels) else "R²"
    r2 = f" {score}: of all rows{'' if marked is None else ', and of those held out'}." if len(x_hat) == 1 else ""
    large = "" if marked is None else "; large markers: rows that were not learned from"
    bars = "; bars: how often a level comes back, of all rows" if any(levels) else ""
    caption = (
        "Each column, observed and reconstructed from the mean code, in the units of the data"
        f"{large}{bars}{panel_note}.{r2}"
    )
    figure = column_reconstructions(x, x_hat, columns, marked, levels=levels)
    return folder.save(figure, "reconstructions", caption)


def _samples(one: Encoded, seed: int) -> Table:
    likelihood = one.model.decode(_prior_codes(one, SAMPLES, seed))
    if not one.codec.space.missing:
        return _cells(one, likelihood.mean)
    # The likeliest level of every code would leave rare levels out: cells are drawn.
    return _cells(one, likelihood.sample(generator(seed, "evaluate", 7, 1)))


def _cells(one: Encoded, x: Tensor) -> Table:
    return np.asarray(one.codec.in_user_units(x).numpy())
