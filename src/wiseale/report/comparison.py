"""The report of a comparison: results, figures, all measures, and the commands that repeat the runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from wiseale.errors import counted
from wiseale.evaluation.measures import NOTATION, defined
from wiseale.experiments.comparison import Comparison, Result, Summary, summarize
from wiseale.experiments.figures import draw_all
from wiseale.experiments.intervals import MINIMUM_SEEDS
from wiseale.figures.style import SavedFigure
from wiseale.figures.words import data_in_words
from wiseale.models.collapse import collapse_message
from wiseale.report import tables
from wiseale.report.document import Block, Commands, Definitions, Document, Paragraph, Picture, Section, Table


def comparison_sections(
    comparison: Comparison,
    results: Sequence[Result],
    summary: Summary,
    pictures: Sequence[SavedFigure],
    prefix: str = "",
) -> tuple[Section, ...]:
    """Results, figures, all measures, and the settings of the runs; ``prefix`` begins every title.

    Without a prefix, the definitions of the measures follow their table; a page of several experiments has them once.
    """
    name = tables.stem(prefix)
    results_and_notes: tuple[Block, ...] = (
        tables.results_table(summary, tables.FIT, f"{name}results", "Match with the data and with the prior."),
        tables.results_table(summary, tables.CODES, f"{name}codes", "Properties of the codes."),
        *tables.column_quality(summary, f"{name}columns"),
        *collapse_notes(results),
        *_notes(results),
    )
    meanings = () if prefix else measure_definitions(summary)
    return (
        Section(f"{prefix}Results", results_and_notes),
        Section(f"{prefix}Pictures", tuple(Picture(one.path, one.caption) for one in pictures)),
        Section(f"{prefix}All measures", (tables.full_table(summary, name), *meanings)),
        Section(f"{prefix}How it was run", _how_it_was_run(comparison, results, name)),
    )


def comparison_page(comparison: Comparison) -> Document:
    """Draw the figures and assemble the report of what is done of a comparison."""
    results = comparison.results()
    pictures = draw_all(comparison.out / "figures", results) if results else []
    sections = comparison_sections(comparison, results, summarize(results), pictures)
    if unfinished := comparison.unfinished():
        sections = (Section("Unfinished runs", (tables.unfinished_table(unfinished),)), *sections)
    seeds, data = comparison.seeds, data_in_words(comparison.base.data)
    lead = (
        f"{counted(len(comparison.systems), 'system')}, {counted(seeds, 'seed')} each, on {data}. "
        "Nats per observation unless stated otherwise"
        f"{'; ± is a 95 % Student interval over seeds' if seeds > 1 else ''}."
    )
    return Document(f"Comparison on {data}", lead, sections, (tables.runs_table(results),))


def measure_definitions(*summaries: Summary) -> tuple[Definitions, ...]:
    """What every measure of these summaries means."""
    names = {name for summary in summaries for measures in summary.values() for name in measures}
    entries = [(measure.name, measure.text) for measure in defined(names)]
    return (Definitions("What each measure means", (("Notation", NOTATION), *entries)),) if entries else ()


def collapse_notes(results: Sequence[Result]) -> tuple[Paragraph, ...]:
    """One paragraph per system with collapsed runs: which seeds, how little the codes say, and what to try."""
    collapsed: dict[str, list[Result]] = {}
    for result in results:
        use = result.evaluation.code_use
        if use is not None and use.collapsed:
            collapsed.setdefault(result.system.name, []).append(result)
    notes = []
    for system, (first, *others) in collapsed.items():
        seeds = f"seed{'s' if others else ''} {', '.join(str(run.seed) for run in (first, *others))}"
        settings, use = first.directory.read_record().settings, first.evaluation.code_use
        assert use is not None
        advice = collapse_message(use, settings.objective, settings.likelihood, lambda s: f"--{s.replace('_', '-')}")
        notes.append(Paragraph(f"{system}, {seeds}: {advice}."))
    return tuple(notes)


def _notes(results: Sequence[Result]) -> tuple[Paragraph, ...]:
    """How to read the result tables."""
    if not results:
        return (Paragraph("Nothing has been evaluated."),)
    evaluation = results[0].evaluation
    how = Paragraph(
        f"Measured on {counted(evaluation.n_eval, 'row')} ({evaluation.split}) the models have not seen; compactness "
        "and mutual information depend on that number. Less is better for MSE, reconstruction and NLL, more for the "
        "ELBO. KLs, mutual information, width, active units and separation describe a representation: a collapsed one "
        "has KLs of 0. A dash: not defined for that system."
    )
    seeds = len({result.seed for result in results})
    if seeds >= MINIMUM_SEEDS:
        return (how,)
    few = "One seed: differences may be chance." if seeds == 1 else "Two seeds: ± is 12.7 standard errors."
    return how, Paragraph(f"{few} Nothing here is established.")


def _how_it_was_run(comparison: Comparison, results: Sequence[Result], name: str) -> tuple[Block, ...]:
    """The systems, their common settings, the commands that repeat the runs, and the machine."""
    if not results:
        return (Paragraph("No run has finished."),)
    seed = results[0].seed
    lines = tuple(
        f"wiseale train --config {one.path.relative_to(comparison.out)}/config.json --out again/{one.system.folder}"
        for one in results
        if one.seed == seed and one.path.is_relative_to(comparison.out)
    )
    environment = asdict(results[0].directory.read_environment())
    return (
        tables.systems_table(results, f"{name}systems"),
        tables.settings_table(results, f"{name}settings"),
        Paragraph(
            f"From {comparison.out.name}/, these commands make the runs of seed {seed} again, bit for bit on the same "
            "machine and versions; other seeds with --seed."
        ),
        Commands(lines),
        Table(f"{name}environment", ("what", "value"), tables.pairs(environment), "Machine and versions."),
    )
