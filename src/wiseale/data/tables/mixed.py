"""Tables with words, categories and missing cells: their space is learned in one reading, their cells in another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from wiseale.data.dataset import Array
from wiseale.data.tables.blocks import Block, RawBlock, place
from wiseale.data.tables.columns import Selection, no_name
from wiseale.data.tables.kinds import (
    AS_SAID,
    ROW_NUMBERS,
    Asked,
    Facts,
    Ignored,
    are_row_numbers,
    decide,
    merge_rare,
)
from wiseale.data.tables.raw import RawColumn, Text
from wiseale.errors import DataError
from wiseale.registry import did_you_mean
from wiseale.spaces import Column, MixedSpace, TableSpace
from wiseale.spaces.columns import KindError, Unseen

Raw = Callable[[Selection], Iterator[RawBlock]]


@dataclass(frozen=True)
class Learned:
    """What was found out about the columns of a table.

    Attributes:
        chosen: the columns that are learned from.
        space: of their cells; None where they are numbers alone and none is missing.
        ignored: name of each other column, and why it is not learned from.
    """

    chosen: Selection
    space: MixedSpace | None
    ignored: tuple[tuple[str, str], ...]


_TRUTH = {"false": False, "true": True}
_LINES_KEPT = 1 << 20  # rows whose line numbers are remembered for errors


def learn_space(
    chosen: Selection,
    read: Raw,
    asked: Mapping[str, Asked],
    missing: Literal["learn", "error"] = "learn",
    unseen: Unseen = "error",
) -> Learned:
    """Which columns are learned from, and as what.

    Numbers alone are numbers because nothing else was asked for or found: such a table is learned as a plain matrix.
    """
    names = [chosen.names[i] or str(i + 1) for i in chosen.features]
    asked = _find(chosen.file, asked, names)
    facts = [Facts() for _ in chosen.features]
    lines: list[int] = []
    for block in read(chosen):
        for known, column in zip(facts, block.columns, strict=True):
            known.add(column)
        if len(lines) < _LINES_KEPT:
            lines.extend(block.lines)
    if facts[0].rows == 0:
        raise DataError(f"{chosen.file} has no rows: at least 2 are needed")

    def where(row: int) -> str:
        return place(chosen, row, lines[row] if row < len(lines) else None)

    numbering = {
        name: reason
        for name, i, known in zip(names, chosen.features, facts, strict=True)
        if name not in asked and (reason := _numbers_rows(chosen, i, known.low if known.counts else None, known.rows))
    }
    without = _as_matrix(asked, dict(zip(names, facts, strict=True)), numbering)
    if without is not None:
        features = tuple(i for name, i in zip(names, chosen.features, strict=True) if name not in without)
        return Learned(replace(chosen, features=features), None, tuple(without.items()))
    found = [
        decide(name, known, asked.get(name), where, row_numbers=numbering.get(name, ""))
        for name, known in zip(names, facts, strict=True)
    ]
    kept = [i for i, column in enumerate(found) if isinstance(column, Column)]
    ignored = tuple((column.name, column.reason) for column in found if isinstance(column, Ignored))
    if not kept:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in ignored)
        raise DataError(f"no column of {chosen.file} is left to learn from ({reasons}): say the kinds of some")
    if missing == "error":
        _refuse_missing([(names[i], facts[i]) for i in kept], where)
    columns = tuple(
        merge_rare(column, known) if unseen == "other" else column
        for column, known in zip(found, facts, strict=True)
        if isinstance(column, Column)
    )
    features = tuple(chosen.features[i] for i in kept)
    return Learned(replace(chosen, features=features), MixedSpace.of(columns, ignored, unseen), ignored)


def leave_out_row_numbers(chosen: Selection, x: Array) -> tuple[Learned, Array]:
    """A table of numbers alone (n, C) without its row numbers, by the rule of :func:`learn_space`."""
    kept, ignored = [], []
    for k, i in enumerate(chosen.features):
        column = x[:, k]
        rises = len(column) > 0 and column[-1] - column[0] == len(column) - 1 and column[0] == np.floor(column[0])
        low = float(column[0]) if rises and bool((np.diff(column) == 1).all()) else None
        if reason := _numbers_rows(chosen, i, low, len(column)):
            ignored.append((chosen.names[i] or str(i + 1), reason))
        else:
            kept.append(k)
    if not kept:
        raise DataError(
            f"{chosen.file} holds row numbers alone: say the kind of a column, such as {ignored[0][0]}:number"
        )
    features = tuple(chosen.features[k] for k in kept)
    learned = Learned(replace(chosen, features=features), None, tuple(ignored))
    return learned, x[:, kept] if ignored else x


def _numbers_rows(chosen: Selection, column: int, low: float | None, rows: int) -> str:
    """Why a column that counts up from ``low`` (None: does not count) is left out; empty where it is learned from."""
    if column == chosen.unnamed:
        if rows and low not in (0, 1):
            raise no_name(chosen, column)
        return f"{ROW_NUMBERS} without a name"
    if chosen.said or low is None or not are_row_numbers(chosen.names[column] or str(column + 1), low, rows):
        return ""
    return ROW_NUMBERS


def _as_matrix(
    asked: Mapping[str, Asked], columns: Mapping[str, Facts], numbering: Mapping[str, str]
) -> dict[str, str] | None:
    """Where the columns are to be learned as plain numbers, those to leave out, each with the reason; else None."""
    if any(kind not in ("ignore", "label", "number") for kind in asked.values()):
        return None
    without = {name: "a label" if kind == "label" else AS_SAID for name, kind in asked.items() if kind != "number"}
    if not all(_is_plain(facts) for name, facts in columns.items() if name not in without):
        return None
    without = {name: without.get(name) or numbering[name] for name in columns if name in without or name in numbering}
    return without if len(without) < len(columns) else None


def _is_plain(facts: Facts) -> bool:
    """Whether a column holds a number in every row."""
    column = facts.column
    return column is not None and column.categories is None and not column.holds and facts.numbers == facts.rows


def encoded(space: TableSpace, chosen: Selection, read: Raw, unseen: Unseen = "error") -> Iterator[Block]:
    """The cells of the chosen columns as numbers, block by block."""
    start = 0
    for raw in read(chosen):
        yield encode_block(space, chosen, raw, unseen, start)
        start += len(raw)


def encode_block(
    space: TableSpace, chosen: Selection, raw: RawBlock, unseen: Unseen = "error", start: int = 0
) -> Block:
    """The cells of a block as numbers; its first row is called ``start`` in errors."""

    def where(i: int) -> str:
        return place(chosen, start + i, raw.lines[i] if raw.lines else None)

    values = np.empty((len(raw), space.x_shape[0]))
    for i, (column, cells) in enumerate(zip(space.written, raw.columns, strict=True)):
        values[:, i] = encode_column(column, cells, where, unseen)
    return Block(values, raw.labels, raw.lines)


def encode_column(
    column: Column, raw: RawColumn, where: Callable[[int], str], unseen: Unseen = "error"
) -> npt.NDArray[np.float64]:
    """Cells as numbers, (n,); ``where(i)`` names the row of a cell that cannot be one."""
    if not column.has_levels:
        cells, wrong = raw.as_numbers()
        if wrong is not None:
            advice = raw.form.advice([raw.values[wrong]]) if raw.form else ""
            problem = f'{where(wrong)} has {raw.shown(wrong)} in column "{column.name}", not a number'
            raise DataError(problem + (advice and f": {advice}"))
        if column.is_count:
            _require_counts(column, cells, where)
        return cells
    positions: dict[Any, int] = {level: i for i, level in enumerate(column.levels)}
    if isinstance(raw.values, Text) and all(isinstance(level, str) for level in column.levels):
        result = raw.values.look_up(positions)
    else:
        result = np.array([positions.get(value, -1) for value in _level_values(column, raw)], np.float64)
    unknown = np.flatnonzero((result < 0) & ~raw.missing())
    if column.other:
        result[unknown] = positions[column.other]
    elif len(unknown) and unseen == "error":
        first = int(unknown[0])
        near = did_you_mean(str(raw.values[first]), [str(level) for level in column.levels])
        raise DataError(
            f'{where(first)} has {raw.shown(first)} in column "{column.name}", which training did not see{near}; '
            "correct it, or say unseen=missing or unseen=other"
        )
    result[result < 0] = math.nan
    return result


def _level_values(column: Column, raw: RawColumn) -> Sequence[Any]:
    """The cells as levels are looked up: text, or numbers; ``true`` in a file is True in a data frame."""
    numbers: list[float] = raw.as_numbers()[0].tolist()
    if all(isinstance(level, str) for level in column.levels):
        if not raw.boolean:
            return raw.words()
        truth = {_TRUTH[level.lower()]: level for level in map(str, column.levels) if level.lower() in _TRUTH}
        return [truth.get(bool(number)) if number in (0, 1) else None for number in numbers]
    if isinstance(column.levels[0], bool) and not raw.is_numeric:
        return [_TRUTH.get(str(word).lower(), number) for word, number in zip(raw.words(), numbers, strict=True)]
    return numbers


def _require_counts(column: Column, cells: npt.NDArray[np.float64], where: Callable[[int], str]) -> None:
    wrong = np.flatnonzero(~((cells >= 0) & (cells == np.floor(cells))) & ~np.isnan(cells))
    if len(wrong):
        problem = f'{where(int(wrong[0]))} has {cells[wrong[0]]:g} in column "{column.name}", which is no count'
        if column.name.isdecimal() and not column.dtype:  # an array has no names to say kinds by
            raise DataError(f"{problem}: correct it, or train on a table that names the column and say it is a number")
        raise KindError(problem, "correct it, or train with {number}", column.name)


def _find(file: str, asked: Mapping[str, Asked], names: list[str]) -> dict[str, Asked]:
    """Kinds by the columns' names; a column may also be called by its number from 1."""
    found: dict[str, Asked] = {}
    for name, kind in asked.items():
        if name in names:
            found[name] = kind
        elif name.isdecimal() and 1 <= int(name) <= len(names):
            found[names[int(name) - 1]] = kind
        else:
            raise DataError(f'{file} has no column "{name}" to be {kind}{did_you_mean(name, names)}')
    return found


def _refuse_missing(columns: list[tuple[str, Facts]], where: Callable[[int], str]) -> None:
    first = [(facts.first_missing, name) for name, facts in columns if facts.first_missing is not None]
    if first:
        row, name = min(first)
        raise DataError(f'{where(row)} has a missing cell in column "{name}": fill or drop it, or say missing=learn')
