"""The page of a reproduction: the verdicts on the claims, then each experiment with its figures and tables."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from wiseale.experiments.comparison import summarize
from wiseale.experiments.figures import draw_all
from wiseale.experiments.intervals import MINIMUM_SEEDS
from wiseale.figures.style import SavedFigure
from wiseale.models.collapse import LEAST_INFORMATION
from wiseale.paper import Scale
from wiseale.paper.claims import BY_COMPUTATION, Verdict, judge
from wiseale.paper.relations import MARGIN
from wiseale.paper.reproduction import ExperimentResult, read_reproduction
from wiseale.paper.rows import conditions_of
from wiseale.paper.sweep import weights_tables
from wiseale.paper.toy import Judgement, ToyResult, read_toy
from wiseale.report.comparison import comparison_sections, measure_definitions
from wiseale.report.document import Block, Commands, Document, Paragraph, Picture, Section, Table
from wiseale.report.tables import main_table, runs_table, stem, unfinished_table

_MOST_MISSING = 3


def reproduction_page(out: Path, toy: ToyResult | None = None) -> tuple[Document, list[Verdict]]:
    """The report of all experiments that `wiseale reproduce` has run in a directory, and the verdicts on the claims.

    ``toy`` is the bound analysis, if it was just computed; otherwise it is read from the directory.
    """
    reproduction = read_reproduction(out)
    if toy is None and (out / "toy" / "tables").is_dir():
        toy = read_toy(out / "toy")
    verdicts = judge(reproduction.evidence(), verdicts_of(toy.tables.judgements) if toy else ())
    judged = tuple((v.claim, v.statement, v.outcome, _numbers(v)) for v in verdicts)
    claims = Table("claims", ("claim", "what it says", "verdict", "numbers"), judged)
    sections = [Section("Claims", (Paragraph(how_claims_are_judged()), claims)), *([toy_section(toy)] if toy else [])]
    for outcome in reproduction.outcomes.values():
        sections += _experiment(outcome, out)
        sections += _weights_and_controls(outcome, reproduction.scale)
    summaries = [outcome.summary for outcome in reproduction.outcomes.values() if outcome.results]
    if meanings := measure_definitions(*summaries):
        sections.append(Section("Measures", meanings))
    names = [*reproduction.outcomes, *(["toy"] if toy else [])]
    again = tuple(f"wiseale reproduce {name} --scale {reproduction.scale} --out DIR" for name in names)
    sections.append(Section("Run it again", (Commands(again),)))
    rehearsal = " A rehearsal: its trained models show that everything runs, and nothing else."
    lead = (
        f"WiSE-ALE (Lin et al. 2019) and the systems it is compared with, at scale '{reproduction.scale}'."
        f"{rehearsal if reproduction.scale == 'smoke' else ''} Nats per observation unless stated otherwise; ± is a "
        "95 % Student interval over seeds."
    )
    missing = tuple((v.claim, v.statement, one) for v in verdicts for one in v.missing)
    data = [Table("claims_missing", ("claim", "what it says", "missing"), missing)]
    data += [runs_table(one.results, stem(one.experiment.title)) for one in reproduction.outcomes.values()]
    return Document("The paper's experiments, run again", lead, tuple(sections), tuple(data)), verdicts


def _numbers(verdict: Verdict) -> str:
    """The numbers of a verdict; where runs of many systems are missing, only of how many in each experiment."""
    sentence = f"missing: {'; '.join(verdict.missing)}"
    if len(verdict.missing) <= _MOST_MISSING or sentence not in verdict.numbers:
        return verdict.numbers
    counts = Counter(one.partition(":")[0] for one in verdict.missing)
    each = ", ".join(f"{experiment} {count}" for experiment, count in counts.items())
    short = f"missing: runs of {len(verdict.missing)} systems ({each}), named in tables/claims_missing.csv"
    return verdict.numbers.replace(sentence, short)


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


def _experiment(outcome: ExperimentResult, out: Path) -> list[Section]:
    title = outcome.experiment.title
    notes: list[Block] = [Paragraph(f"Note: {outcome.note}.")] if outcome.note else []
    if unfinished := outcome.unfinished:
        notes.append(unfinished_table(unfinished, f"{outcome.name}_unfinished"))
    results = outcome.results
    if not results:
        return [Section(title, (*notes, Paragraph("No run has finished.")))]
    main, *others = outcome.comparisons
    own = main.results()
    sweep = [result for comparison in others for result in comparison.results()]
    if not own:  # only runs of the sweep were chosen
        own, sweep = sweep, []
    pictures = _numbered(outcome.experiment.figures, draw_all(main.out / "figures", own, sweep), out)
    sections = comparison_sections(main, results, outcome.summary, pictures, prefix=f"{title}: ")
    return [*([Section(f"{title}: notes", tuple(notes))] if notes else []), *sections]


def _weights_and_controls(outcome: ExperimentResult, scale: Scale) -> list[Section]:
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


def _numbered(numbers: Mapping[str, str], pictures: Sequence[SavedFigure], out: Path) -> list[SavedFigure]:
    """Copy figures that the paper has too to ``out/figures``, named by their number, and number their captions."""
    numbered = []
    for one in pictures:
        number = numbers.get(one.path.stem)
        if number is not None:
            (out / "figures").mkdir(parents=True, exist_ok=True)
            for suffix in (".png", ".svg"):
                shutil.copyfile(one.path.with_suffix(suffix), out / "figures" / f"figure{number}{suffix}")
            one = SavedFigure(one.path, f"Figure {number} of the paper. {one.caption}")
        numbered.append(one)
    return numbered


FIGURES = {
    "figure4": "Figure 4 of the paper. Two posteriors at μ = ±1: (a)-(c) densities, their average and the prior at "
    "three σ; (d) AEVB's prior term, the exact aggregate KL and its bounds against σ.",
    "bound_error_optimum": "Claim C8. Left: the paper's bound and the exact value where the bound is smallest. Right: "
    "their distance where reconstruction + bound is smallest, for a decoder that returns its code.",
}

TABLES = {
    "minima": "Two posteriors at μ = ±1: the σ where each quantity is smallest; the σ around it where it is within 0.1 "
    "nats of its minimum, and where it is no larger than AEVB's minimum.",
    "optimum": "The paper's bound minimised over all posteriors: its value, the exact aggregate KL there, the gap.",
    "objective_optimum": "Reconstruction + bound minimised (d = 1): bound, exact value and the gap; apart is the "
    "mutual information over log M.",
}


def verdicts_of(judgements: Sequence[Judgement]) -> list[Verdict]:
    """The judgements of the analysis as verdicts."""
    return [Verdict(one.claim, BY_COMPUTATION[one.claim], one.verdict, one.numbers) for one in judgements]


def toy_section(result: ToyResult) -> Section:
    """The figures and the short tables; the long tables are only in files."""
    blocks: list[Block] = [
        Paragraph("docs/bounds.md derives and explains what follows; every number behind the figures is in toy/tables.")
    ]
    blocks += [Picture(path, FIGURES[path.stem]) for path in result.figures]
    for name, caption in TABLES.items():
        records = [vars(row) for row in getattr(result.tables, name)]
        columns = tuple(column.replace("_", " ") for column in records[0])
        cells = ((f"{v:.4g}" if isinstance(v, float) else str(v) for v in one.values()) for one in records)
        blocks.append(Table(f"toy_{name}", columns, tuple(map(tuple, cells)), caption))
    return Section("The bounds", tuple(blocks))
