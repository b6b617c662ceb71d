"""The page of a comparison: what was run, what came out, and how to run it again."""

from __future__ import annotations

import json
from collections.abc import Sequence

from wiseale.experiments.comparison import Comparison, Estimate, Result, Summary
from wiseale.experiments.drawn import Drawn
from wiseale.experiments.jobs import Failure
from wiseale.report.document import Commands, Document, Paragraph, Picture, Section, Table
from wiseale.training.run_directory import RunDirectory

MAIN_MEASURES = {
    "mse": "MSE",
    "reconstruction": "reconstruction",
    "kl_posterior_prior": "AEVB KL",
    "kl_aggregate_mc": "aggregate KL",
    "kl_reverse_mc": "reverse KL",
    "elbo": "ELBO",
    "nll_importance_weighted": "NLL",
    "mutual_information": "mutual information",
    "active_units": "active units",
    "sigma_geometric_mean": "width",
    "separation": "separation",
}


def comparison_sections(
    comparison: Comparison, results: Sequence[Result], summary: Summary, drawn: Sequence[Drawn], prefix: str = ""
) -> tuple[Section, ...]:
    """Results, pictures, every measure, and the runs behind them."""
    return (
        Section(f"{prefix}Results", (main_table(summary, prefix), Paragraph(_reading(results)))),
        Section(f"{prefix}Pictures", tuple(Picture(one.path, one.caption) for one in drawn)),
        Section(f"{prefix}All measures", (full_table(summary, prefix),)),
        Section(f"{prefix}How it was run", run_blocks(comparison, results)),
    )


def comparison_document(
    comparison: Comparison,
    results: Sequence[Result],
    summary: Summary,
    drawn: Sequence[Drawn],
    unfinished: Sequence[Failure],
) -> Document:
    """The page of `wiseale compare`."""
    sections = comparison_sections(comparison, results, summary, drawn)
    if unfinished:
        sections = (Section("Unfinished runs", (unfinished_table(unfinished),)), *sections)
    lead = (
        f"{len(comparison.systems)} systems, {comparison.seeds} seed{'s' if comparison.seeds > 1 else ''} each, on "
        f"{comparison.base.data}. Nats per observation unless said otherwise; ± is a 95 % Student interval over seeds."
    )
    return Document(f"Comparison on {comparison.base.data}", lead, sections)


def unfinished_table(unfinished: Sequence[Failure], name: str = "unfinished") -> Table:
    """Runs that are missing from every number, and why."""
    rows = tuple((failure.job.name, failure.reason) for failure in unfinished)
    return Table(name, ("run", "last words"), rows, "These runs are in no table and no figure of this page.")


def main_table(summary: Summary, prefix: str = "") -> Table:
    """The measures most people look at first."""
    shown = {name: title for name, title in MAIN_MEASURES.items() if any(name in m for m in summary.values())}
    rows = tuple((system, *(_cell(m.get(name)) for name in shown)) for system, m in summary.items())
    return Table(_slug(f"{prefix}results"), ("system", *shown.values()), rows)


def full_table(summary: Summary, prefix: str = "") -> Table:
    """Every measure of every system."""
    names = list(dict.fromkeys(name for measures in summary.values() for name in measures))
    rows = tuple((name, *(_cell(measures.get(name)) for measures in summary.values())) for name in names)
    caption = "A dash: not defined for that system."
    return Table(_slug(f"{prefix}all_measures"), ("measure", *summary), rows, caption)


def run_blocks(comparison: Comparison, results: Sequence[Result]) -> tuple[Commands | Table | Paragraph, ...]:
    """The commands that repeat each run, and the machine they ran on."""
    if not results:
        return (Paragraph("No run has finished."),)
    first = RunDirectory(results[0].path)
    environment = json.loads(first.environment.read_text(encoding="utf-8"))
    rows = tuple((key.replace("_", " "), str(value)) for key, value in environment.items())
    shown = [result for result in results if result.seed == comparison.base.seed]
    lines = tuple(
        f"wiseale train --config {one.path.relative_to(comparison.out)}/config.json --out again/{one.system.folder}"
        for one in shown
    )
    return (
        Paragraph("From the folder of this page, each run can be made again, bit for bit on the same machine:"),
        Commands(lines),
        Table("environment", ("what", "value"), rows),
    )


def _reading(results: Sequence[Result]) -> str:
    if not results:
        return "Nothing has been evaluated."
    evaluation = json.loads(RunDirectory(results[0].path).evaluation.read_text(encoding="utf-8"))
    return (
        f"Measured on {evaluation['n_eval']:,} rows ({evaluation['split']}) the models have not seen. Compactness and "
        "mutual information depend on that number. Less is better for MSE, reconstruction and KLs, more for the ELBO."
    )


def _cell(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    spread = "" if estimate.half_width is None else f" ± {_digits(estimate.half_width)}"
    return f"{_digits(estimate.mean)}{spread}"


def _digits(value: float) -> str:
    size = abs(value)
    return f"{value:.1f}" if size >= 100 else f"{value:.2f}" if size >= 10 else f"{value:.3f}"


def _slug(title: str) -> str:
    return "_".join("".join(c if c.isalnum() else " " for c in title.lower()).split())
