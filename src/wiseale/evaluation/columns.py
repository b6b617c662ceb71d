"""How well each column of a table comes back, in the user's units, beside what needs no model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from wiseale.data.tables.schema import Column
from wiseale.evaluation.case import Case, Tick
from wiseale.evaluation.encoded import Encoded
from wiseale.evaluation.findings import Findings

MOST_COLUMNS = 100
"""Columns of a table that are measured one by one; a wider one has too many to read."""


@torch.no_grad()
def columns(case: Case, tick: Tick) -> Findings:
    """From z = mu: RMSE of numbers and counts, accuracy of levels; beside the training mean and most frequent level.

    ``rmse:price`` and ``rmse_baseline:price``, ``accuracy:colour`` and ``accuracy_baseline:colour``; observed cells
    count alone. Where the model does not hold the training mean, as of counts, that of the evaluated rows stands for
    it. Rows that are not a table with named columns have none of these.
    """
    encoded = case.encoded
    shown, usual = _columns(encoded), _usual(encoded)
    if not 0 < len(shown) <= MOST_COLUMNS or len(encoded.model.x_shape) != 1:
        return Findings({})
    cells = [encoded.codec.in_user_units(x).double() for x, _ in encoded.blocks()]
    codes = encoded.posterior.mu
    answers = [
        encoded.codec.in_user_units(encoded.model.decode(codes[part]).mean).double() for _, part in encoded.blocks()
    ]
    x, x_hat = torch.cat(cells), torch.cat(answers)
    found: dict[str, float] = {}
    for i, column in enumerate(shown):
        seen = ~x[:, i].isnan()
        if not bool(seen.any()):
            continue
        truth, guess = x[seen, i], x_hat[seen, i]
        if column.has_levels:
            found[f"accuracy:{column.name}"] = float((guess.round() == truth).double().mean())
            found[f"accuracy_baseline:{column.name}"] = float((truth == usual[i]).double().mean())
        else:
            mean = truth.mean() if usual[i].isnan() else usual[i]
            found[f"rmse:{column.name}"] = math.sqrt(float((truth - guess).square().mean()))
            found[f"rmse_baseline:{column.name}"] = math.sqrt(float((truth - mean).square().mean()))
    return Findings.of(found)


def _columns(encoded: Encoded) -> Sequence[Column]:
    known = encoded.codec.model_config
    if encoded.model.table is not None and known.table is not None:
        return known.table.columns
    return [Column(name, "number") for name in known.columns]


def _usual(encoded: Encoded) -> Tensor:
    """What is guessed of each column without a model, (C,); NaN where the model does not hold it."""
    mean, family = encoded.model.units.mean.double(), encoded.model.table
    by_column = mean.shape == encoded.model.x_shape  # numbers are standardised by the mean of their column
    usual = mean.clone() if by_column else torch.full(encoded.model.x_shape, math.nan, dtype=torch.double)
    if family is None:
        return usual
    shift, layout = family.features.shift.cpu(), family.layout  # of levels, their shares in the training rows
    for i, kind in enumerate(layout.kinds):
        entries = shift[layout.starts[i] : layout.starts[i] + layout.widths[i]]
        if kind == "category":
            usual[i] = float(entries.argmax())
        elif kind == "binary":
            usual[i] = float(entries[0] > 0.5)
        elif kind != "number":
            usual[i] = math.nan
    return usual
