"""How well each column of a table comes back, in the user's units, beside what needs no model."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from wiseale.evaluation.case import Case, Tick
from wiseale.evaluation.encoded import Encoded
from wiseale.evaluation.findings import Findings
from wiseale.spaces import MixedSpace, TableSpace
from wiseale.spaces.features import CellFeatures
from wiseale.spaces.units import Affine

MOST_COLUMNS = 100
"""Columns of a table that are measured one by one; a wider one has too many to read."""


@torch.no_grad()
def columns(case: Case, tick: Tick) -> Findings:
    """From z = mu: RMSE of numbers and counts, accuracy of levels; beside the training mean and most frequent level.

    ``rmse:price`` and ``rmse_baseline:price``, ``accuracy:colour`` and ``accuracy_baseline:colour``; observed cells
    count alone. Where the model does not hold the training mean, as of counts, that of the evaluated rows stands for
    it. Rows that are not a table with named columns have none of these.
    """
    encoded, space = case.encoded, case.encoded.codec.space
    if not isinstance(space, TableSpace) or not 0 < len(space.columns) <= MOST_COLUMNS:
        return Findings({})
    usual = _usual(encoded)
    cells = [encoded.codec.in_user_units(x).double() for x, _ in encoded.blocks()]
    codes = encoded.posterior.mu
    answers = [
        encoded.codec.in_user_units(encoded.model.decode(codes[part]).mean).double() for _, part in encoded.blocks()
    ]
    x, x_hat = torch.cat(cells), torch.cat(answers)
    found: dict[str, float] = {}
    for i, column in enumerate(space.learned):
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


def _usual(encoded: Encoded) -> Tensor:
    """What is guessed of each column without a model, (C,); NaN where the model does not hold it."""
    space, units, features = encoded.codec.space, encoded.model.units, encoded.model.features
    usual = torch.full(space.x_shape, math.nan, dtype=torch.double)
    if isinstance(units, Affine) and units.mean.shape == usual.shape:  # the means of the columns of numbers
        usual = units.mean.double().clone()
    if not isinstance(space, MixedSpace) or not isinstance(features, CellFeatures):
        return usual
    shift = features.shift.cpu()  # of levels, their shares in the training rows
    for i, (column, start) in enumerate(zip(space.columns, space.starts, strict=True)):
        if column.kind == "category":
            usual[i] = float(shift[start : start + column.width].argmax())
        elif column.kind == "binary":
            usual[i] = float(shift[start] > 0.5)
        elif column.is_count:
            usual[i] = math.nan
    return usual
