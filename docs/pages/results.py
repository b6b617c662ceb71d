"""The page of results: claims with their numbers, the sweep of the weight, tables and figures, from kept results."""

from collections import Counter
from collections.abc import Sequence

from docs.pages.figures import draw_figures, draw_weights
from docs.pages.kept import Results

from wiseale import registry
from wiseale.experiments.intervals import estimate
from wiseale.paper import SCALES, TIME_PER_STEP
from wiseale.paper.claims import Verdict, judge
from wiseale.paper.page import how_claims_are_judged, verdicts_of
from wiseale.paper.rows import Condition, RunRow, conditions_of, evidence_of, values_of
from wiseale.paper.sweep import compare_weights, weights_tables
from wiseale.paper.toy import read_table
from wiseale.report.document import Block, Document, Paragraph, Section, Table
from wiseale.report.tables import main_table

LEAD = (
    "Every number on this page is computed from files beside it: runs.csv, one row for each run with its settings, "
    "seed and commit, and the tables of the bound analysis (C4, C8) in toy. The command make results writes the "
    "page again; make results FROM=DIR first adds the runs of wiseale reproduce … --out DIR. Nats per observation "
    "unless stated otherwise; ± is a 95 % Student interval over seeds."
)
SCALE = (
    "Scale 'paper' has the paper's numbers of rows and epochs where it states them. AEVB is the usual VAE; a weight is "
    "the factor of the prior term."
)
_TIMED = f", and C10's processor time a step on those called {TIME_PER_STEP}"


def results_document(results: Results) -> Document:
    """Draw the figures into the results' folder and assemble the page; the scale nearest to the paper's comes first."""
    rows = results.rows()
    scales = [scale for scale in reversed(SCALES) if any(row.condition.scale == scale for row in rows)] or ["paper"]
    sections = []
    for scale in scales:
        folder = results.toy(scale)
        toy = verdicts_of(read_table(folder, "judgements")) if folder else []
        verdicts = judge(evidence_of(rows, scale), toy)
        sections += [_claims(verdicts, scale), _conditions(rows, scale)]
        if scale == scales[0] and (weights := draw_weights(results, rows, scale)):
            sections.append(Section("Weight against weight", (weights,)))
        judged = [conditions[0] for conditions in conditions_of(rows, scale).values()]
        sections += [_weights(rows, condition) for condition in judged if _swept(rows, condition)]
        sections += [_table(rows, condition) for condition in judged]
    pictures = draw_figures(results, rows, scales[0])
    none = Paragraph("No figure can be drawn yet: add runs first.")
    return Document("Results", LEAD, (*sections, Section("The paper's figures", tuple(pictures) or (none,))))


def _claims(verdicts: Sequence[Verdict], scale: str) -> Section:
    table = Table(
        "claims",
        ("claim", "what it says", "verdict", "its statements"),
        tuple((v.claim, v.statement, v.outcome, v.tally or "computed") for v in verdicts),
    )
    numbers = [(v.claim, finding.text) for v in verdicts for finding in v.findings]
    numbers += [(v.claim, v.numbers) for v in verdicts if not v.findings and not v.missing]
    numbers.sort(key=lambda line: int(line[0][1:]))
    missing = [(v.claim, "; ".join(v.missing)) for v in verdicts if v.missing]
    blocks: list[Block] = [*([Paragraph(SCALE)] if scale == "paper" else []), Paragraph(how_claims_are_judged()), table]
    if numbers:
        blocks.append(Table("numbers", ("claim", "statement, interval, outcome"), tuple(numbers), "Numbers."))
    if missing:
        blocks.append(Table("missing", ("claim", "runs"), tuple(missing), "Missing runs."))
    return Section(f"Claims, scale '{scale}'", tuple(blocks))


def _conditions(rows: Sequence[RunRow], scale: str) -> Section:
    """What was run under which conditions, controls included; of several conditions the first is the one judged."""
    lines = []
    for control in sorted({row.condition.control for row in rows if row.condition.scale == scale}):
        for experiment, found in conditions_of(rows, scale, control).items():
            for number, condition in enumerate(found):
                here = [row for row in rows if row.condition == condition]
                role = control or ("judged" if number == 0 else "left out")
                systems, seeds = _systems_and_seeds(here)
                commits = ", ".join(sorted({row.commit or "?" for row in here}))
                hours = f"{sum(row.seconds for row in here) / 3600:.2f}"
                lines.append((experiment, role, str(condition), systems, seeds, str(len(here)), hours, commits))
    columns = ("experiment", "role", "condition", "systems", "seeds of each", "runs", "hours of training", "commits")
    timed = any(role == TIME_PER_STEP for _, role, *_ in lines)
    text = (
        f"The claims are tested on the conditions called judged{_TIMED if timed else ''}; runs of different conditions "
        "are never averaged."
        if lines
        else "No run has been added yet."
    )
    return Section(
        f"What was run, scale '{scale}'",
        (Paragraph(text), *([Table("conditions", columns, tuple(lines))] if lines else [])),
    )


def _swept(rows: Sequence[RunRow], condition: Condition) -> bool:
    return len(compare_weights(rows, condition)) > 1


def _systems_and_seeds(rows: Sequence[RunRow]) -> tuple[str, str]:
    """``("14", "3 (WAE-GAN: 1)")``: how many systems, and the seeds of most of them."""
    counts = Counter(row.system for row in rows)
    usual = Counter(counts.values()).most_common(1)[0][0]
    others = ", ".join(f"{system}: {count}" for system, count in sorted(counts.items()) if count != usual)
    return str(len(counts)), f"{usual} ({others})" if others else str(usual)


def _weights(rows: Sequence[RunRow], condition: Condition) -> Section:
    return Section(
        f"Weight against weight: {_title(condition)}", (Paragraph(str(condition)), *weights_tables(rows, condition))
    )


def _table(rows: Sequence[RunRow], condition: Condition) -> Section:
    values = values_of(rows, condition)
    summary = {system: {name: estimate(v) for name, v in measures.items()} for system, measures in values.items()}
    return Section(f"Measures: {_title(condition)}", (Paragraph(str(condition)), main_table(summary)))


def _title(condition: Condition) -> str:
    title: str = registry.lookup("experiment", condition.experiment).title
    return f"{title}, scale '{condition.scale}'"
