"""The report of a reproduction: the verdicts on the claims, then each experiment with its figures and tables."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from wiseale.experiments.comparison import summarize
from wiseale.experiments.gallery import draw_all
from wiseale.experiments.paper.claims import Verdict
from wiseale.experiments.paper.evidence import conditions_of
from wiseale.experiments.paper.relations import MARGIN, MINIMUM_SEEDS
from wiseale.experiments.paper.reproduction import Outcome, Reproduction
from wiseale.experiments.paper.scales import Scale
from wiseale.experiments.saved_figure import SavedFigure
from wiseale.models.collapse import LEAST_INFORMATION
from wiseale.report.comparison import (
    comparison_sections,
    main_table,
    measure_definitions,
    runs_table,
    unfinished_table,
)
from wiseale.report.document import Commands, Document, Paragraph, Section, Table
from wiseale.report.weights import weights_tables

_MOST_MISSING = 3


def reproduction_document(
    reproduction: Reproduction, verdicts: Sequence[Verdict], extra: Sequence[Section], out: Path
) -> Document:
    """Draw the figures and assemble the report; ``extra`` sections follow the claims."""
    sections = [claims_section(verdicts), *extra]
    for outcome in reproduction.outcomes.values():
        sections += _experiment(outcome, out)
        sections += _weights_and_controls(outcome, reproduction.scale)
    summaries = [outcome.summary for outcome in reproduction.outcomes.values() if outcome.results]
    if meanings := measure_definitions(*summaries):
        sections.append(Section("Measures", meanings))
    made = [*reproduction.outcomes, *(["toy"] if extra else [])]
    again = tuple(f"wiseale reproduce {name} --scale {reproduction.scale} --out DIR" for name in made)
    sections.append(Section("Run it again", (Commands(again),)))
    rehearsal = " A rehearsal: its trained models show that everything runs, and nothing else."
    lead = (
        f"WiSE-ALE (Lin et al. 2019) and the systems it is compared with, at scale '{reproduction.scale}'."
        f"{rehearsal if reproduction.scale == 'smoke' else ''} Nats per observation unless stated otherwise; ± is a "
        "95 % Student interval over seeds."
    )
    data = [missing_table(verdicts)]
    data += [runs_table(one.results, f"{one.experiment.title}: ") for one in reproduction.outcomes.values()]
    return Document("The paper's experiments, run again", lead, tuple(sections), tuple(data))


def claims_section(verdicts: Sequence[Verdict]) -> Section:
    """Every claim with its verdict and the numbers that decide it."""
    rows = tuple((v.claim, v.statement, v.outcome, _numbers(v)) for v in verdicts)
    table = Table("claims", ("claim", "what it says", "verdict", "numbers"), rows)
    return Section("Claims", (Paragraph(how_claims_are_judged()), table))


def missing_table(verdicts: Sequence[Verdict]) -> Table:
    """Every system on every dataset of which a claim needs more runs than there are."""
    rows = tuple((verdict.claim, verdict.statement, one) for verdict in verdicts for one in verdict.missing)
    return Table("claims_missing", ("claim", "what it says", "missing"), rows)


def _numbers(verdict: Verdict) -> str:
    """The numbers of a verdict; where runs of many systems are missing, only of how many in each experiment."""
    listed = f"missing: {'; '.join(verdict.missing)}"
    if len(verdict.missing) <= _MOST_MISSING or listed not in verdict.numbers:
        return verdict.numbers
    counts = Counter(one.partition(":")[0] for one in verdict.missing)
    each = ", ".join(f"{experiment} {count}" for experiment, count in counts.items())
    short = f"missing: runs of {len(verdict.missing)} systems ({each}), named in tables/claims_missing.csv"
    return verdict.numbers.replace(listed, short)


def how_claims_are_judged() -> str:
    """The rules behind the verdicts."""
    return (
        f"Each statement behind a claim is tested by an interval over at least {MINIMUM_SEEDS} seeds: Welch's for a "
        "difference of means, the F distribution's for a ratio of spreads. All tests of a claim together err with at "
        "most 5 % (Bonferroni over its statements; there is no correction across claims). All seeds see the same data: "
        "the intervals say what other seeds would give, not other data. A claim is held if all its statements are, not "
        "held if one is refuted, and otherwise not decided, in particular while any of its runs is missing. C4 and C8 "
        "are decided by computation alone. As written, WiSE-ALE's prior term has the weight 1/M, its rivals' have 1 or "
        "4: how much of such a verdict is due to the weight alone, β-VAE with β = 1/M shows. A system has collapsed "
        "where its codes say next to nothing about the input (no active unit, or a mutual information below "
        f"{LEAST_INFORMATION:g} nats). Beside an order that is not decided stands what is known: that the systems are "
        f"alike within {100 * MARGIN:g} % (a test of equivalence at the same confidence), or how many seeds of each "
        "would decide it if means and spreads stayed as they are, a rough guide."
    )


def _experiment(outcome: Outcome, out: Path) -> list[Section]:
    title = outcome.experiment.title
    note = (Paragraph(f"Note: {outcome.note}."),) if outcome.note else ()
    if unfinished := outcome.unfinished:
        note = (*note, unfinished_table(unfinished, f"{outcome.name}_unfinished"))
    results = outcome.results
    if not results:
        return [Section(title, (*note, Paragraph("No run has finished.")))]
    main, *others = outcome.comparisons
    shown = main.results()
    sweep = [result for comparison in others for result in comparison.results()]
    if not shown:  # only runs of the sweep were chosen
        shown, sweep = sweep, []
    saved = _numbered(outcome.experiment.figures, draw_all(main.out / "figures", shown, sweep), out)
    sections = list(comparison_sections(main, results, outcome.summary, saved, prefix=f"{title}: "))
    if note:
        sections.insert(0, Section(f"{title}: notes", note))
    return sections


def _weights_and_controls(outcome: Outcome, scale: Scale) -> list[Section]:
    """WiSE-ALE beside β-VAE at equal weights, and the runs that differ on purpose, which no other table averages."""
    rows = outcome.rows(scale)
    sections = []
    for condition in conditions_of(rows, scale).get(outcome.name, [])[:1]:
        tables = weights_tables(rows, condition)
        if len(tables[0].rows) > 1:
            sections.append(Section(f"{outcome.experiment.title}: weight against weight", tables))
    for control, comparison in outcome.controls.items():
        if results := comparison.results():
            table = replace(main_table(summarize(results)), name=f"{outcome.name}_{control}")
            sections.append(Section(f"{outcome.experiment.title}: {control}", (table,)))
    return sections


def _numbered(numbers: Mapping[str, str], saved: Sequence[SavedFigure], out: Path) -> list[SavedFigure]:
    """Copy figures that the paper has too to ``out/figures``, named by their number, and number their captions."""
    made = []
    for one in saved:
        number = numbers.get(one.path.stem)
        if number is not None:
            (out / "figures").mkdir(parents=True, exist_ok=True)
            for suffix in (".png", ".svg"):
                shutil.copyfile(one.path.with_suffix(suffix), out / "figures" / f"figure{number}{suffix}")
            one = SavedFigure(one.path, f"Figure {number} of the paper. {one.caption}")
        made.append(one)
    return made
