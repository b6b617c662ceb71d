"""The report of one evaluated run: what it has come to, the map of its codes, its columns, then everything else."""

from __future__ import annotations

from pathlib import Path

from wiseale.config import TrainConfig
from wiseale.errors import RunError
from wiseale.experiments.comparison import Comparison, Result, System, summarize
from wiseale.experiments.gallery import draw_all
from wiseale.experiments.words import data_in_words, objective_in_words
from wiseale.report.column_quality import column_quality
from wiseale.report.comparison import collapse_notes, comparison_sections, runs_table
from wiseale.report.document import Document, Paragraph, Picture, Section, Table
from wiseale.report.in_short import in_short, lead
from wiseale.report.strange_cells import strange_cells
from wiseale.runs.run import Run


def run_document(path: Path) -> Document:
    """The report of a run: plain sentences, then what the report of a comparison holds, of one system and seed."""
    run = Run.open(path)
    if not run.directory.evaluation.exists():
        raise RunError(f"{path} has not been evaluated: run `wiseale evaluate {path}` first")
    record, settings = run.record, run.settings
    objective = settings.spec("objective")
    system = System(objective_in_words(objective), objective)
    result = Result(system, settings.seed, run.path)
    summary, saved = summarize([result]), draw_all(run.directory.figures, [result])
    maps = [one for one in saved if one.path.stem == "latent_map"]
    sentences = (Paragraph(text) for text in in_short(record, result.evaluation))
    sections = [
        Section("In short", (*sentences, *collapse_notes([result]), *(Picture(one.path, one.caption) for one in maps))),
        *_section("Columns", column_quality(summary)),
    ]
    strange = _section("Strange cells", strange_cells(run))
    comparison = Comparison(TrainConfig(**settings.to_values()), (system,), 1, run.path)
    others = [one for one in saved if one not in maps]
    results, pictures, measures, how = comparison_sections(comparison, [result], summary, others)
    said = {*column_quality(summary), *collapse_notes([result])}
    results = Section("Numbers", tuple(block for block in results.blocks if block not in said))
    title = f"{system.name} on {data_in_words(settings.data)}"
    begins = lead(record, result.evaluation)
    return Document(title, begins, (*sections, pictures, *strange, results, measures, how), (runs_table([result]),))


def _section(title: str, blocks: tuple[Table, ...]) -> tuple[Section, ...]:
    return (Section(title, blocks),) if blocks else ()
