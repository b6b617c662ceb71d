"""The bound analysis as a part of the page."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from wiseale.experiments.claims import Verdict
from wiseale.experiments.toy import ToyResult
from wiseale.report.document import Paragraph, Picture, Section, Table

STATEMENTS = {
    "C4": "two-Gaussian toy: AEVB's KL favours wide merged posteriors, WiSE-ALE's stays low over a wide range",
    "C8": "at the optimum the bound approaches the true KL",
}
CAPTIONS = {"figure4": "Figure 4 of the paper: two Gaussian posteriors at ±1."}

_SHOWN = ("minima", "optimum", "objective_optimum", "collapse", "saturation", "batch_bias")


def toy_verdicts(result: ToyResult) -> list[Verdict]:
    """C4 and C8: decided by computation, so no seeds are needed."""
    return [Verdict(one.claim, STATEMENTS[one.claim], one.verdict, one.numbers) for one in result.tables.judgements]


def toy_section(result: ToyResult) -> Section:
    """Figures and tables; the long table of errors is in a file of its own."""
    pictures = [Picture(path, CAPTIONS.get(path.stem, _words(path.stem) + ".")) for path in result.figures]
    tables = [_table(name, getattr(result.tables, name)) for name in _SHOWN]
    note = Paragraph(
        "Every number, the error of each estimate included, is in toy/tables; docs/bounds.md explains them."
    )
    return Section("The bounds", (*pictures, *tables, note))


def _table(name: str, rows: Sequence[Any]) -> Table:
    columns = tuple(field.name for field in dataclasses.fields(rows[0]))
    cells = tuple(tuple(_cell(getattr(row, column)) for column in columns) for row in rows)
    return Table(f"toy_{name}", tuple(c.replace("_", " ") for c in columns), cells, _words(name))


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
