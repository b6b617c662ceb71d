"""The report of a comparison: results, figures, all measures, and the commands that repeat the runs."""

from __future__ import annotations

from collections.abc import Sequence

from wiseale.errors import counted
from wiseale.evaluation.measures import NOTATION, defined
from wiseale.experiments.comparison import Comparison, Result, Summary, summarize
from wiseale.experiments.gallery import draw_all
from wiseale.experiments.intervals import MINIMUM_SEEDS
from wiseale.experiments.jobs import Failure
from wiseale.figures.style import SavedFigure
from wiseale.figures.words import data_in_words
from wiseale.models.collapse import collapse_message
from wiseale.report.cells import estimate_cell
from wiseale.report.document import Definitions, Document, Paragraph, Picture, Section, Table
from wiseale.report.how_it_was_run import run_blocks

FIT = {
    "mse": "MSE",
    "reconstruction": "reconstruction",
    "kl_posterior_prior": "AEVB KL",
    "kl_aggregate_mc": "aggregate KL",
    "kl_reverse_mc": "reverse KL",
    "elbo": "ELBO",
    "nll_importance_weighted": "NLL",
}
CODES = {
    "mutual_information": "mutual information",
    "active_units": "active units",
    "sigma_geometric_mean": "width",
    "separation": "separation",
}


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
    meanings = () if prefix else measure_definitions(summary)
    return (
        Section(
            f"{prefix}Results",
            (
                _table(summary, FIT, f"{_stem(prefix)}results", "Match with the data and with the prior."),
                _table(summary, CODES, f"{_stem(prefix)}codes", "Properties of the codes."),
                *column_quality(summary, f"{_stem(prefix)}columns"),
                *collapse_notes(results),
                *_notes(results),
            ),
        ),
        Section(f"{prefix}Pictures", tuple(Picture(one.path, one.caption) for one in pictures)),
        Section(f"{prefix}All measures", (full_table(summary, prefix), *meanings)),
        Section(f"{prefix}How it was run", run_blocks(comparison, results, _stem(prefix))),
    )


def comparison_page(comparison: Comparison) -> Document:
    """Draw the figures and assemble the report of what is done of a comparison."""
    results = comparison.results()
    pictures = draw_all(comparison.out / "figures", results) if results else []
    return comparison_document(comparison, results, summarize(results), pictures, comparison.unfinished())


def comparison_document(
    comparison: Comparison,
    results: Sequence[Result],
    summary: Summary,
    pictures: Sequence[SavedFigure],
    unfinished: Sequence[Failure],
) -> Document:
    """The report of `wiseale compare`."""
    sections = comparison_sections(comparison, results, summary, pictures)
    if unfinished:
        sections = (Section("Unfinished runs", (unfinished_table(unfinished),)), *sections)
    seeds, data = comparison.seeds, data_in_words(comparison.base.data)
    lead = (
        f"{counted(len(comparison.systems), 'system')}, {counted(seeds, 'seed')} each, on {data}. "
        "Nats per observation unless stated otherwise"
        f"{'; ± is a 95 % Student interval over seeds' if seeds > 1 else ''}."
    )
    return Document(f"Comparison on {data}", lead, sections, (runs_table(results),))


def unfinished_table(unfinished: Sequence[Failure], name: str = "unfinished") -> Table:
    """Runs that failed or did not finish, and why; they are part of no other table."""
    rows = tuple((failure.job.name, failure.reason) for failure in unfinished)
    return Table(name, ("run", "last log line"), rows, "These runs are in no table and no figure of this page.")


def main_table(summary: Summary) -> Table:
    """The measures most people look at first, in one table."""
    return _table(summary, FIT | CODES, "results")


def _table(summary: Summary, measures: dict[str, str], name: str, caption: str = "") -> Table:
    """One row per system; measures that no system has are left out."""
    titles = {measure: title for measure, title in measures.items() if any(measure in m for m in summary.values())}
    seeds = _seeds(summary)
    rows = tuple((k, *(estimate_cell(m.get(measure), seeds[k]) for measure in titles)) for k, m in summary.items())
    return Table(name, ("system", *titles.values()), rows, caption)


def _seeds(summary: Summary) -> dict[str, int]:
    """How many runs each system has: every run has some measure."""
    return {system: max((one.n for one in measures.values()), default=0) for system, measures in summary.items()}


def full_table(summary: Summary, prefix: str = "") -> Table:
    """Every measure of every system."""
    names = list(dict.fromkeys(name for measures in summary.values() for name in measures))
    seeds = _seeds(summary)
    rows = tuple((name, *(estimate_cell(m.get(name), seeds[k]) for k, m in summary.items())) for name in names)
    caption = (
        "A dash: not defined for that system. The values of each run, with all digits, are in "
        f"tables/{_stem(prefix)}measures_by_run.csv."
    )
    return Table(f"{_stem(prefix)}all_measures", ("measure", *summary), rows, caption)


def measure_definitions(*summaries: Summary) -> tuple[Definitions, ...]:
    """What every measure of these summaries means."""
    names = {name for summary in summaries for measures in summary.values() for name in measures}
    entries = [(measure.name, measure.text) for measure in defined(names)]
    return (Definitions("What each measure means", (("Notation", NOTATION), *entries)),) if entries else ()


def runs_table(results: Sequence[Result], prefix: str = "") -> Table:
    """Every measure of every run, with all digits."""
    rows = tuple(
        (result.system.name, str(result.seed), measure, "" if value is None else repr(value))
        for result in results
        for measure, value in (result.evaluation.measures | result.training_measures).items()
    )
    return Table(f"{_stem(prefix)}measures_by_run", ("system", "seed", "measure", "value"), rows)


def collapse_notes(results: Sequence[Result]) -> tuple[Paragraph, ...]:
    """One paragraph per system with collapsed runs: which seeds, how little the codes say, and what to try."""
    collapsed: dict[str, list[Result]] = {}
    for result in results:
        use = result.evaluation.code_use
        if use is not None and use.collapsed:
            collapsed.setdefault(result.system.name, []).append(result)
    return tuple(Paragraph(_collapse_note(name, runs)) for name, runs in collapsed.items())


def _collapse_note(system: str, runs: Sequence[Result]) -> str:
    seeds = f"seed{'s' if len(runs) > 1 else ''} {', '.join(str(run.seed) for run in runs)}"
    settings, use = runs[0].directory.read_record().settings, runs[0].evaluation.code_use
    assert use is not None
    message = collapse_message(use, settings.objective, settings.likelihood, lambda name: f"--{name.replace('_', '-')}")
    return f"{system}, {seeds}: {message}."


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


def _stem(title: str) -> str:
    """A title as the beginning of a table's file name.

    >>> _stem("Sine waves: ")
    'sine_waves_'
    """
    words = "".join(c if c.isalnum() else " " for c in title.lower()).split()
    return "".join(f"{word}_" for word in words)


_MEASURES = {"rmse": ("RMSE", "the column's mean"), "accuracy": ("accuracy", "the most frequent level")}


def column_quality(summary: Summary, name: str = "columns") -> tuple[Table, ...]:
    """One row per column: a measure of every system beside the baseline; nothing where there are no such measures."""
    rows = []
    for measure, (title, baseline) in _MEASURES.items():
        names = dict.fromkeys(key for measures in summary.values() for key in measures if key.startswith(f"{measure}:"))
        for key in names:
            column = key.removeprefix(f"{measure}:")
            systems = [estimate_cell(measures.get(key)) for measures in summary.values()]
            without = next((m[f"{measure}_baseline:{column}"] for m in summary.values() if key in m), None)
            rows.append((column, title, *systems, f"{estimate_cell(without)} ({baseline})"))
    if not rows:
        return ()
    caption = (
        "How well each column is reconstructed from the mean code, on rows the models have not seen: RMSE in the "
        "column's own units (less is better), accuracy of the likeliest level (more is better)."
    )
    return (Table(name, ("column", "measure", *summary, "without a model"), tuple(rows), caption),)
