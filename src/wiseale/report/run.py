"""The report of one evaluated run: plain sentences, the map of its codes, its columns, then everything else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wiseale.config import TrainConfig
from wiseale.data.dataset import Array
from wiseale.data.tables.raw import as_word
from wiseale.errors import RunError, counted
from wiseale.evaluation.record import Evaluation
from wiseale.experiments.comparison import Comparison, Result, System, summarize
from wiseale.experiments.figures import draw_all
from wiseale.figures.words import data_in_words, listed, objective_in_words
from wiseale.models.collapse import ENOUGH_ROWS
from wiseale.report.comparison import collapse_notes, comparison_sections
from wiseale.report.document import Document, Paragraph, Picture, Section, Table
from wiseale.report.tables import column_quality, runs_table
from wiseale.runs.record import RunRecord
from wiseale.runs.run import Run
from wiseale.spaces import Column, TableSpace

_MOST_COLUMNS = 4
_KINDS = {1: "row", 2: "signal", 3: "image"}


def lead(record: RunRecord, evaluation: Evaluation) -> str:
    """What was trained on what, and on which rows it was measured."""
    settings, facts = record.settings, record.facts
    system = objective_in_words(settings.spec("objective"))
    kind = _KINDS[len(facts.x_shape)]
    numbers = counted(settings.latent_dim, "number")
    of = {"held out": "held out of training", "test": "of the test set"}.get(evaluation.split, "")
    if evaluation.data != settings.data:
        of = f"of {data_in_words(evaluation.data)}"
    return (
        f"A model that turns each {kind} of {data_in_words(settings.data)} into {numbers}, its code, and back. It was "
        f"trained with {system} on {counted(facts.n_train, kind)}, and measured on "
        f"{counted(evaluation.n_eval, kind)} {of}".rstrip()
        + "."
    )


def in_short(record: RunRecord, evaluation: Evaluation) -> tuple[str, ...]:
    """How well rows are reconstructed from their codes, which units of the code are used, and how sure that is."""
    kind, latent_dim = _KINDS[len(record.facts.x_shape)], record.settings.latent_dim
    sentences = [*_columns(evaluation), *_levels(evaluation)] or _values(record, evaluation)
    if evaluation.n_eval < ENOUGH_ROWS:
        are = "is" if evaluation.n_eval == 1 else "are"
        sentences.append(f"{counted(evaluation.n_eval, kind)} {are} few: other ones would give other numbers.")
    return (*sentences, *_units(latent_dim, evaluation))


def _columns(evaluation: Evaluation) -> list[str]:
    """The typical errors of numbers in the user's units; of many columns, how many are better than their mean."""
    errors = [one for one in _beside_baseline(evaluation, "rmse") if one[2] > 0]
    if not errors:
        return []
    best = sorted(errors, key=lambda one: one[1] / one[2])
    examples = errors if len(errors) <= _MOST_COLUMNS else [*best[:2], *best[-2:]]
    values = listed([f"{column} {_number(error)} ({_number(mean)})" for column, error, mean in examples])
    if len(errors) == 1:
        return [
            f'Reconstructed from the code, the column "{errors[0][0]}" has a root mean squared error of '
            f"{_number(errors[0][1])} ({_number(errors[0][2])} if its mean were always answered)."
        ]
    which = "" if len(examples) == len(errors) else f", the two best and the two worst of {len(errors)} columns"
    share = sorted(1 - (error / mean) ** 2 for _, error, mean in errors)
    middle = (share[(len(share) - 1) // 2] + share[len(share) // 2]) / 2
    return [
        "Reconstructed from the code, columns of numbers have these root mean squared errors, in their own units"
        f"{which} (in brackets: always answering the column's mean): {values}. In the median column, "
        f"{max(0.0, middle):.0%} of the variance is explained."
    ]


def _levels(evaluation: Evaluation) -> list[str]:
    """The share of right levels in columns with categories, on average; constant columns need no model."""
    shares = [one for one in _beside_baseline(evaluation, "accuracy") if one[2] < 1]
    if not shares:
        return []
    right = math.fsum(accuracy for _, accuracy, _ in shares) / len(shares)
    usual = math.fsum(baseline for _, _, baseline in shares) / len(shares)
    where = f'the column "{shares[0][0]}"' if len(shares) == 1 else f"{len(shares)} columns of categories"
    mean = "" if len(shares) == 1 else " on average"
    return [
        f"In {where}, the level comes back right in {right:.0%} of the cells{mean} ({usual:.0%} if the most frequent "
        "level were always answered)."
    ]


def _values(record: RunRecord, evaluation: Evaluation) -> list[str]:
    """The squared error of values that are not the columns of a table."""
    mse = evaluation.measures.get("mse_at_mu")
    if mse is None:
        return []
    if record.facts.standardized != "none":
        return [
            f"Reconstructed from the code, values have a mean squared error of {_number(mse)}, where 1 is the variance "
            "of the values that were trained on."
        ]
    what = "pixels" if len(record.facts.x_shape) == 3 else "values"
    return [f"Reconstructed from the code, {what} are off by {_number(math.sqrt(mse))} (root mean squared error)."]


def _units(latent_dim: int, evaluation: Evaluation) -> list[str]:
    use = evaluation.code_use
    if use is None or use.collapsed:  # the report has a note on collapse
        return []
    if use.active_units >= latent_dim:
        every = {1: "The only unit of the code is", 2: "Both units of the code are"}
        return [f"{every.get(latent_dim, f'All {latent_dim} units of the code are')} used."]
    idle = latent_dim - use.active_units
    others = "the other one hardly varies" if idle == 1 else f"the other {idle} hardly vary"
    used = f"{use.active_units} of {latent_dim} units of the code {'is' if use.active_units == 1 else 'are'} used"
    return [f"{used}; {others} from one code to the next."]


def _beside_baseline(evaluation: Evaluation, measure: str) -> Sequence[tuple[str, float, float]]:
    """Columns with a measure and what it is without a model."""
    columns = []
    for name, value in evaluation.measures.items():
        column = name.removeprefix(f"{measure}:")
        baseline = evaluation.measures.get(f"{measure}_baseline:{column}")
        if name != column and value is not None and baseline is not None:
            columns.append((column, value, baseline))
    return columns


def _number(value: float) -> str:
    """About three digits, without an exponent where that is short.

    >>> _number(214.24), _number(63582.4), _number(0.0314)
    ('214', '63,582', '0.0314')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


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
        *([Section("Columns", columns)] if columns else []),
        pictures,
        *(Section("Strange cells", (table,)) for table in strange_cells(run)),
        Section("Numbers", tuple(block for block in results.blocks if block not in {*columns, *collapse})),
        measures,
        how,
    )
    title = f"{system.name} on {data_in_words(settings.data)}"
    return Document(title, lead(record, result.evaluation), sections, (runs_table([result]),))


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
        others = [f"{column.name} {_in_words(column, x[row, k])}" for k, column in enumerate(columns) if k != i]
        more = ", …" if len(others) > _OTHERS else ""
        cell = (columns[i].name, _in_words(columns[i], x[row, i]), _in_words(columns[i], answer[i]))
        rows.append((str(row + 1), *cell, f"{surprise[row, i]:.1f}", ", ".join(others[:_OTHERS]) + more))
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
