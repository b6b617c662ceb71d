"""How well each column of a mixed table comes back, in the user's units, beside what needs no model."""

from __future__ import annotations

import math

import torch

from wiseale.evaluation.case import Case, Tick
from wiseale.evaluation.findings import Findings


@torch.no_grad()
def columns(case: Case, tick: Tick) -> Findings:
    """From z = mu: RMSE of numbers and counts, accuracy of levels; beside the training mean and most frequent level.

    ``rmse:price`` and ``rmse_baseline:price``, ``accuracy:colour`` and ``accuracy_baseline:colour``; observed cells
    count alone. Tables of numbers alone have none of these.
    """
    encoded = case.encoded
    family, table = encoded.model.table, encoded.codec.model_config.table
    if family is None or table is None:
        return Findings({})
    cells = [encoded.codec.in_user_units(x).double() for x, _ in encoded.blocks()]
    codes = encoded.posterior.mu
    answers = [
        encoded.codec.in_user_units(encoded.model.decode(codes[part]).mean).double() for _, part in encoded.blocks()
    ]
    x, x_hat = torch.cat(cells), torch.cat(answers)
    units, shift = encoded.model.units, family.features.shift.cpu()
    found: dict[str, float] = {}
    for i, column in enumerate(table.columns):
        seen = ~x[:, i].isnan()
        if not bool(seen.any()):
            continue
        truth, guess = x[seen, i], x_hat[seen, i]
        entries = shift[family.layout.starts[i] : family.layout.starts[i] + family.layout.widths[i]]
        if column.has_levels:
            usual = float(entries.argmax()) if column.kind == "category" else float(entries[0] > 0.5)
            found[f"accuracy:{column.name}"] = float((guess.round() == truth).double().mean())
            found[f"accuracy_baseline:{column.name}"] = float((truth == usual).double().mean())
            continue
        # The mean of the training rows: numbers are standardised by it, counts are centred as log(1 + x).
        usual = float(units.mean.expand(len(table.columns))[i]) if column.kind == "number" else float(entries.expm1())
        found[f"rmse:{column.name}"] = math.sqrt(float((truth - guess).square().mean()))
        found[f"rmse_baseline:{column.name}"] = math.sqrt(float((truth - usual).square().mean()))
    return Findings.of(found)
