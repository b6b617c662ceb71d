"""The report of one evaluated run."""

from __future__ import annotations

from pathlib import Path

from wiseale.errors import RunError
from wiseale.evaluation.encoded import open_run
from wiseale.experiments.comparison import Comparison, Result, System, summarize
from wiseale.experiments.gallery import draw_all
from wiseale.experiments.model_pictures import brief_spec
from wiseale.report.comparison import comparison_sections, runs_table
from wiseale.report.document import Document, Section
from wiseale.report.strange_cells import strange_cells
from wiseale.runs.directory import RunDirectory


def run_document(path: Path) -> Document:
    """The report of a run: that of a comparison with one system and one seed."""
    run = RunDirectory.open(path)
    if not run.evaluation.exists():
        raise RunError(f"{path} has not been evaluated: run `wiseale evaluate {path}` first")
    settings = run.read_record().settings
    system = System(brief_spec(settings.objective), settings.objective)
    results = [Result(system, settings.seed, run.path)]
    comparison = Comparison(settings, (system,), 1, run.path)
    sections = comparison_sections(comparison, results, summarize(results), draw_all(run.figures, results))
    strange = strange_cells(open_run(path))
    if strange:
        sections = (*sections[:2], Section("Strange cells", strange), *sections[2:])
    lead = "One run. Nats per observation unless stated otherwise."
    return Document(f"{system.name} on {settings.data}", lead, sections, (runs_table(results),))
