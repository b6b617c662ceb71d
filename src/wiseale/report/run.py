"""The report of one evaluated run: what it has come to, the map of its codes, its columns, then everything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wiseale.config import TrainConfig
from wiseale.data.dataset import Array
from wiseale.data.tables.raw import as_word
from wiseale.errors import RunError, counted
from wiseale.experiments.comparison import Comparison, Result, System, summarize
from wiseale.experiments.gallery import draw_all
from wiseale.figures.words import data_in_words, objective_in_words
from wiseale.report.comparison import collapse_notes, column_quality, comparison_sections, runs_table
from wiseale.report.document import Document, Paragraph, Picture, Section, Table
from wiseale.report.in_short import in_short, lead
from wiseale.runs.run import Run
from wiseale.spaces import Column, TableSpace


def run_document(path: Path) -> Document:
    """The report of a run: plain sentences, then what the report of a comparison holds, of one system and seed."""
    run = Run.open(path)
    if not run.evaluation.exists():
        raise RunError(f"{path} has not been evaluated: run `wiseale evaluate {path}` first")
    record, settings = run.record, run.settings
    objective = settings.spec("objective")
    system = System(objective_in_words(objective), objective)
    result = Result(system, settings.seed, run.path)
    summary, figures = summarize([result]), draw_all(run.figures, [result])
    maps = [one for one in figures if one.path.stem == "latent_map"]
    columns, collapse = column_quality(summary), collapse_notes([result])
    sentences = (Paragraph(text) for text in in_short(record, result.evaluation))
    others = [one for one in figures if one not in maps]
    comparison = Comparison(TrainConfig(**settings.to_values()), (system,), 1, run.path)
    results, pictures, measures, how = comparison_sections(comparison, [result], summary, others)
    sections = (
        Section("In short", (*sentences, *collapse, *(Picture(one.path, one.caption) for one in maps))),
        *_section("Columns", columns),
        pictures,
        *_section("Strange cells", strange_cells(run)),
        Section("Numbers", tuple(block for block in results.blocks if block not in {*columns, *collapse})),
        measures,
        how,
    )
    title = f"{system.name} on {data_in_words(settings.data)}"
    return Document(title, lead(record, result.evaluation), sections, (runs_table([result]),))


def _section(title: str, blocks: tuple[Table, ...]) -> tuple[Section, ...]:
    return (Section(title, blocks),) if blocks else ()


MOST_CELLS = 20
MOST_ROWS = 100_000
"""Of a longer table only the first rows are ranked."""

_OTHERS = 12  # other cells of the row


def strange_cells(run: Run) -> tuple[Table, ...]:
    """The least likely cells given their row's code; nothing where the rows are not a table with named columns."""
    codec, x = run.fast_codec, run.dataset.train.x[:MOST_ROWS]
    if not isinstance(codec.space, TableSpace) or not codec.space.columns:
        return ()
    parts = list(codec.blocks(len(x)))
    surprise = np.concatenate([codec.cell_surprise(x[part]) for part in parts])
    surprise = np.nan_to_num(surprise, nan=0.0)  # a missing cell has no probability to be unlikely by
    order = np.argsort(-surprise, axis=None, kind="stable")[: min(MOST_CELLS, int((surprise > 0).sum()))]
    if not len(order):
        return ()
    numbers, places = np.unravel_index(order, surprise.shape)
    x_hat = codec.decode(codec.encode(x[numbers]).mu)
    columns = codec.space.written
    rows = []
    for answer, row, i in zip(x_hat, numbers, places, strict=True):
        others = [f"{column.name} {_in_words(column, x[row, k])}" for k, column in enumerate(columns) if k != i][
            :_OTHERS
        ]
        more = ", …" if len(columns) - 1 > _OTHERS else ""
        cell = (columns[i].name, _in_words(columns[i], x[row, i]), _in_words(columns[i], answer[i]))
        rows.append((str(row + 1), *cell, f"{surprise[row, i]:.1f}", ", ".join(others) + more))
    which = f"the first {MOST_ROWS:,} rows" if len(run.dataset.train.x) > MOST_ROWS else counted(len(x), "row")
    caption = (
        f"Of {which}, the cells that are least likely given the code of their row: log p of the expected value "
        "less log p of the observed one; 3 nats are a factor of 20 in probability. Rows are counted from 1, without "
        "the header. Each is a reason to look: an unusual row, a wrong entry, or a column the model has not understood."
    )
    titles = ("row", "column", "observed", "expected", "nats", "the rest of the row")
    return (Table("strange_cells", titles, tuple(rows), caption),)


def _in_words(column: Column, cell: float) -> str:
    """A cell as the user wrote it, numbers to about four digits."""
    cells: Array = column.decode(np.array([cell], np.float64))
    value = cells[0]
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "missing"
    if isinstance(value, str | bool):
        return as_word(value)
    return as_word(float(value)) if float(value).is_integer() else f"{float(value):.4g}"
