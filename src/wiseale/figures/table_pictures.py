"""Figures of tables, column by column: reconstructions, samples, correlations and traversals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from wiseale.errors import counted
from wiseale.evaluation.encoded import Encoded
from wiseale.figures.column_traversals import TableTraversal, column_traversals
from wiseale.figures.columns import (
    MAX_COLUMNS,
    Levels,
    Scale,
    Table,
    column_distributions,
    column_reconstructions,
    drawn_columns,
)
from wiseale.figures.correlations import correlation_matrices
from wiseale.figures.decoded_pictures import Models
from wiseale.figures.shown_codes import MAX_UNITS, REACH, spread_rows, traversal_codes, widest_units
from wiseale.figures.style import Folder, SavedFigure
from wiseale.randomness import generator
from wiseale.spaces import TableSpace

SAMPLES = 2000
_STEPS = 5


@torch.no_grad()
def table_pictures(folder: Folder, all_rows: Models, seed: int, *, brief: bool = False) -> list[SavedFigure]:
    """Draw every figure of a table; ``brief`` leaves out the correlations."""
    some = next(iter(all_rows.values()))
    space = some.codec.space
    assert isinstance(space, TableSpace)
    columns, levels = space.names, space.levels
    x = np.concatenate([in_user_units(some, block) for block, _ in some.blocks()])
    samples = {name: _samples(one, seed) for name, one in all_rows.items()}
    places = space.likeliest_entries(x, MAX_COLUMNS)
    noise = "each cell drawn from its distribution" if levels else "decoded, without observation noise"
    pictures = [
        _reconstructions(folder, all_rows, x, columns),
        folder.save(
            column_distributions(x, samples, columns, levels=levels),
            "prior_samples",
            f"Each column of {counted(len(x), 'row')} of the data (grey) and of {SAMPLES:,} samples: "
            f"codes drawn from the model's prior, {noise}. Numbers in the units of the data, those beyond 3.5 standard "
            f"deviations counted at the ends{_bars('the share of each level', levels)}{_drawn(x)}.",
        ),
        _traversals(folder, all_rows, x, places),
    ]
    if brief or len(places) < 2:
        return pictures
    tables = {name: space.expand(values)[:, places] for name, values in {"data": x, **samples}.items()}
    caption = (
        f"Correlations between the columns of the data, and of the samples of each model{_parts(some)}{_first(x)}."
    )
    figure = correlation_matrices(tables, [space.entries[place].name for place in places])
    return [*pictures, folder.save(figure, "correlations", caption)]


def _reconstructions(folder: Folder, all_rows: Models, x: Table, columns: tuple[str, ...]) -> SavedFigure:
    x_hat = {name: in_user_units(one, one.model.decode(one.posterior.mu).mean) for name, one in all_rows.items()}
    unseen = next(iter(all_rows.values())).unseen
    marked = unseen if unseen is not None and not unseen.all() else None
    levels = next(iter(all_rows.values())).codec.space.levels
    figure = column_reconstructions(x, x_hat, columns, marked, levels=levels)
    score = "R² and accuracy" if any(levels) else "R²"
    some = marked is not None and marked.any()
    r2 = f" {score}: of all rows{', and of those held out' if some else ''}." if len(x_hat) == 1 else ""
    large = "; large markers: rows that were not learned from" if some else ""
    caption = (
        f"Each column, observed and reconstructed from the mean code, in the units of the data{large}"
        f"{_bars('how often a level comes back, of all rows', levels)}{_drawn(x)}.{r2}"
    )
    return folder.save(figure, "reconstructions", caption)


def _samples(one: Encoded, seed: int) -> Table:
    z = one.model.sample_prior(SAMPLES, generator(seed, "evaluate", 7))
    likelihood = one.model.decode(z)
    if not one.codec.space.missing:
        return in_user_units(one, likelihood.mean)
    # The likeliest level of every code would leave rare levels out: cells are drawn.
    return in_user_units(one, likelihood.sample(generator(seed, "evaluate", 7, 1)))


def _traversals(folder: Folder, all_rows: Models, x: Table, places: Sequence[int]) -> SavedFigure:
    some = next(iter(all_rows.values()))
    factor = next(iter(some.factors.values()), None)
    row = int(spread_rows(len(x), 3, None if factor is None else np.asarray(factor))[min(1, len(x) - 1)])
    by_system = {name: traversal(one, row, places) for name, one in all_rows.items()}
    most = max(one.model.latent_dim for one in all_rows.values())
    which = f"the {MAX_UNITS} units whose means vary most" if most > MAX_UNITS else "every unit"
    caption = (
        f"Traversals from the mean code of one row: {which}, one at a time, over {REACH:g} standard deviations of the "
        "codes on either side of their mean. Numbers: the change of each column from the middle, in its own units; "
        f"colour: the same in standard deviations of the column{_parts(some)}{_first(x)}."
    )
    space = some.codec.space
    assert isinstance(space, TableSpace)
    deviation = Scale.of(space.expand(x)[:, places]).deviation
    names = [space.entries[place].name for place in places]
    return folder.save(column_traversals(by_system, deviation, names), "traversals", caption)


def traversal(one: Encoded, row: int, places: Sequence[int]) -> TableTraversal:
    """Traversals from the code of one row, see :func:`~wiseale.figures.shown_codes.traversal_codes`."""
    mu = one.posterior.mu.numpy()
    sigma = one.posterior.scale.numpy() if one.model.stochastic else None
    units = widest_units(mu, MAX_UNITS)
    codes = torch.from_numpy(traversal_codes(mu, sigma, mu[row], units, _STEPS))
    expected = one.model.decode(codes.flatten(0, 1)).expected.cpu()
    values = one.codec.entry_units.inverse(expected).numpy()[:, places]
    return TableTraversal(tuple(f"z{unit + 1}" for unit in units), values.reshape(len(units), _STEPS, -1))


def in_user_units(one: Encoded, x: torch.Tensor) -> Table:
    """Rows in the user's units."""
    values: Table = one.codec.in_user_units(x).numpy()
    return values


def _bars(meaning: str, levels: Levels) -> str:
    return f"; bars: {meaning}" if any(levels) else ""


def _parts(one: Encoded) -> str:
    """How categories are shown where only numbers can be."""
    return "; of a category, the probability of its most frequent levels" if any(one.codec.space.levels) else ""


def _drawn(x: Table) -> str:
    """Which columns have no panel."""
    panels = drawn_columns(x)
    return "" if len(panels) == x.shape[1] else f" ({len(panels)} of {x.shape[1]} columns: the figure names the others)"


def _first(x: Table) -> str:
    return f" (the first {MAX_COLUMNS} of {x.shape[1]} columns)" if x.shape[1] > MAX_COLUMNS else ""
