"""The bound analysis as a section of the report."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from wiseale.experiments.bounds.toy import ToyResult
from wiseale.experiments.bounds.toy_claims import Judgement
from wiseale.experiments.paper.claims import BY_COMPUTATION, Verdict
from wiseale.report.document import Paragraph, Picture, Section, Table

FIGURES = {
    "figure4": "Figure 4 of the paper. Two posteriors at μ = ±1: (a)-(c) densities, their average and the prior at "
    "three σ; (d) AEVB's prior term, the exact aggregate KL and its bounds against σ.",
    "bound_error_sigma": "Estimates of the aggregate KL against σ: values (d = 1), and distances from the exact value, "
    "for 16 random posteriors whose means are drawn from the prior.",
    "bound_error_separation": "Distance of each estimate from the exact aggregate KL against separation: 64 random "
    "posteriors whose average has unit variance.",
    "bound_error_batch_size": "The same against the number of posteriors, at one separation for each dimension.",
    "bound_error_latent_dim": "The same per dimension against d, 64 posteriors, at three separations.",
    "bound_error_map": "Which upper bound is tighter (letter) and how far the tighter one is from the exact value "
    "(shade); framed where the paper's bound is above the mean AEVB KL, which is an upper bound without any pairs.",
    "bound_error_optimum": "Claim C8. Left: the paper's bound and the exact value where the bound is smallest. Right: "
    "their distance where reconstruction + bound is smallest, for a decoder that returns its code.",
    "bound_error_saturation": "What an estimate can save over the mean AEVB KL for posteriors that do not overlap: "
    "log M at most; the paper's bound saves ½(1 − ln 2) nats less for every dimension.",
    "bound_error_batch_bias": "How far the aggregate KL of a batch is above that of the dataset it is drawn from, "
    "within its analytic floor and ceiling (shaded).",
}

TABLES = {
    "minima": "Two posteriors at μ = ±1: the σ where each quantity is smallest; the σ around it where it is within 0.1 "
    "nats of its minimum, and where it is no larger than AEVB's minimum.",
    "optimum": "The paper's bound minimised over all posteriors: its value, the exact aggregate KL there, the gap.",
    "objective_optimum": "Reconstruction + bound minimised (d = 1): bound, exact value and the gap; apart is the "
    "mutual information over log M.",
    "collapse": "Every posterior equal to the prior, where the aggregate KL is 0: the estimates, and ½(1 − ln 2)·d.",
}


def toy_verdicts(result: ToyResult) -> list[Verdict]:
    """Verdicts on C4 and C8, which are decided by computation, without training."""
    return verdicts_of(result.tables.judgements)


def verdicts_of(judgements: Sequence[Judgement]) -> list[Verdict]:
    """The judgements of the analysis as verdicts."""
    return [Verdict(one.claim, BY_COMPUTATION[one.claim], one.verdict, one.numbers) for one in judgements]


def toy_section(result: ToyResult) -> Section:
    """The figures and the short tables; the long tables are only in files."""
    pictures = [Picture(path, FIGURES[path.stem]) for path in result.figures]
    tables = [_table(name, getattr(result.tables, name)) for name in TABLES]
    note = Paragraph(
        "docs/bounds.md derives and explains what follows; every number behind the figures is in toy/tables."
    )
    return Section("The bounds", (note, *pictures, *tables))


def _table(name: str, rows: Sequence[Any]) -> Table:
    columns = tuple(field.name for field in dataclasses.fields(rows[0]))
    cells = tuple(tuple(_cell(getattr(row, column)) for column in columns) for row in rows)
    return Table(f"toy_{name}", tuple(c.replace("_", " ") for c in columns), cells, TABLES[name])


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
