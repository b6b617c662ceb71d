"""Fill the tables of the page on what to choose from kept results; the text between them is written by hand.

A table is kept between two comment lines of the page and replaced as a whole:

    <!-- results: weights sine -->
    …
    <!-- end -->
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from wiseale import registry
from wiseale.config import parse_spec
from wiseale.errors import RunError
from wiseale.experiments import systems as s
from wiseale.experiments.comparison import estimate
from wiseale.experiments.intervals import difference_interval
from wiseale.experiments.paper.evidence import Values, conditions_of, values_of
from wiseale.experiments.paper.relations import MINIMUM_SEEDS, adjusted_confidence
from wiseale.experiments.paper.run_rows import Condition, RunRow
from wiseale.report.cells import estimate_cell
from wiseale.report.document import Block, Paragraph, Table
from wiseale.report.markdown import to_block
from wiseale.report.weights import weights_tables

_BLOCK = re.compile(r"(<!-- results: (?P<table>[^\n]*) -->\n)(?P<kept>.*?)(<!-- end -->|\Z)", re.S)

MEASURES = {"mse": "MSE", "reconstruction": "reconstruction", "kl_aggregate_mc": "aggregate KL", "elbo": "ELBO"}
CONTROL = "init-torch"


def fill_in(page: str, rows: Sequence[RunRow], scale: str = "paper") -> str:
    """The page with every table computed from the rows at one scale; unknown or unended tables are refused."""

    def replaced(found: re.Match[str]) -> str:
        if not found[4] or "<!-- results:" in found["kept"]:
            raise RunError(f"the table '<!-- results: {found['table']} -->' has no end: write <!-- end --> below it")
        kind, _, experiment = found["table"].partition(" ")
        blocks = table_of(kind, experiment, rows, scale)
        return f"{found[1]}\n" + "\n\n".join(to_block(block) for block in blocks) + f"\n\n{found[4]}"

    return _BLOCK.sub(replaced, page)


def table_of(kind: str, experiment: str, rows: Sequence[RunRow], scale: str) -> list[Block]:
    """One table: ``weights``, ``init`` or ``estimators`` of an experiment; a sentence where its runs are missing."""
    kinds = {"weights": _weights, "init": _init, "estimators": _estimators}
    if kind not in kinds or experiment not in registry.EXPERIMENTS:
        raise RunError(f"no table {kind!r} of {experiment!r}: known are {', '.join(kinds)} of the paper's experiments")
    found = conditions_of(rows, scale).get(experiment)
    if not found:
        return [Paragraph(f"Not measured yet: {experiment} has no run at scale '{scale}'.")]
    return [Paragraph(f"{found[0]}."), *kinds[kind](rows, found[0])]


def _weights(rows: Sequence[RunRow], condition: Condition) -> list[Block]:
    tables = weights_tables(rows, condition)
    return [*tables] if tables[0].rows else [Paragraph("Not measured yet: no weight has runs of both systems.")]


def _init(rows: Sequence[RunRow], condition: Condition) -> list[Block]:
    """Each system with the experiment's initial weights and with torch's, and the difference in MSE."""
    controls = conditions_of(rows, condition.scale, CONTROL).get(condition.experiment, [])
    other_weights = next((one for one in controls if _but_for_weights(one) == _but_for_weights(condition)), None)
    if other_weights is None:
        return [Paragraph(f"Not measured yet: no run with torch's initial weights ({CONTROL}).")]
    here, there = values_of(rows, condition), values_of(rows, other_weights)
    names = [name for name in here if name in there]
    confidence = adjusted_confidence(len(names))
    lines = []
    for name in names:
        mine, other = here[name]["mse"], there[name]["mse"]
        enough = min(len(mine), len(other)) >= MINIMUM_SEEDS
        difference = (
            str(difference_interval(mine, other, confidence)) if enough else f"fewer than {MINIMUM_SEEDS} seeds"
        )
        lines.append((name, estimate_cell(estimate(mine)), estimate_cell(estimate(other)), difference))
    columns = ("system", f"MSE, {condition.init} weights", f"MSE, {other_weights.init} weights", "difference")
    caption = "The difference has Welch's interval; the intervals of this table hold jointly with 95 % (Bonferroni)."
    return [Table(f"init_{condition.experiment}", columns, tuple(lines), caption)]


def _but_for_weights(condition: Condition) -> Condition:
    """The condition without its control's name and its initial weights."""
    name, settings = parse_spec(condition.network)
    network = ",".join(f"{key}={value}" for key, value in sorted(settings.items()) if key != "init")
    return replace(condition, control="", init="", network=f"{name}:{network}")


def _estimators(rows: Sequence[RunRow], condition: Condition) -> list[Block]:
    """The paper's bound beside the other estimators and the bank, all at weight 1."""
    values = values_of(rows, condition)
    names = [system.name for system in (s.WISE_ALE, *s.ESTIMATORS) if system.name in values]
    if len(names) < 2:
        return [Paragraph("Not measured yet: no run with another estimator or a bank.")]
    lines = tuple(
        (name, str(_seeds(values, name)), *(_cell(values, name, measure) for measure in MEASURES)) for name in names
    )
    return [Table(f"estimators_{condition.experiment}", ("system", "seeds", *MEASURES.values()), lines)]


def _seeds(values: Values, name: str) -> int:
    return max(len(found) for found in values[name].values())


def _cell(values: Values, name: str, measure: str) -> str:
    found = values[name].get(measure)
    return estimate_cell(estimate(found) if found else None)
