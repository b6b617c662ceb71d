"""Tables with words, categories and missing cells: their space is learned in one reading, their cells in another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from wiseale.data.dataset import Array
from wiseale.data.tables.blocks import Cells, RawBlock, Selection, check_cells, gather, no_name
from wiseale.data.tables.kinds import (
    AS_SAID,
    ROW_NUMBERS,
    Asked,
    Facts,
    are_row_numbers,
    choose_counts,
    decide,
    merge_rare,
)
from wiseale.data.tables.raw import Numbers, RawColumn
from wiseale.errors import DataError
from wiseale.registry import did_you_mean
from wiseale.spaces import Column, MixedSpace, TableSpace
from wiseale.spaces.columns import KindError, Unseen

Raw = Callable[[Selection], Iterator[RawBlock]]

_TRUTH = {"false": False, "true": True}


@dataclass(frozen=True)
class Learned:
    """What the columns of a table hold.

    Attributes:
        chosen: the columns that are learned from.
        space: of their cells; None where they are numbers alone and none is missing.
        ignored: name of each other column, and why it is not learned from.
    """

    chosen: Selection
    space: MixedSpace | None
    ignored: tuple[tuple[str, str], ...]


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
    asked = _by_name(chosen, asked)
    columns = dict(zip(chosen.features, (Facts() for _ in chosen.features), strict=True))
    for block in read(chosen):
        for facts, raw in zip(columns.values(), block.columns, strict=True):
            facts.add(raw)
    if columns[chosen.features[0]].rows == 0:
        raise DataError(f"{chosen.file} has no rows: at least 2 are needed")
    numbering = {
        i: reason
        for i, facts in columns.items()
        if chosen.name(i) not in asked
        and (reason := _numbers_rows(chosen, i, facts.low if facts.counts else None, facts.rows))
    }
    without = {i: reason for i in columns if (reason := _left_out(asked.get(chosen.name(i))) or numbering.get(i, ""))}
    plain = all(facts.is_plain for i, facts in columns.items() if i in numbering or i not in without)
    if plain and len(without) < len(columns) and {*asked.values()} <= {"ignore", "label", "number"}:
        return _learned(chosen, None, without)
    kinds = {
        i: decide(chosen.name(i), facts, asked.get(chosen.name(i)), chosen, row_numbers=numbering.get(i, ""))
        for i, facts in columns.items()
    }
    kept = {i: column for i, column in kinds.items() if isinstance(column, Column)}
    without = {i: reason for i, reason in kinds.items() if isinstance(reason, str)}
    if not kept:
        reasons = "; ".join(f"{chosen.name(i)}: {reason}" for i, reason in without.items())
        raise DataError(f"no column of {chosen.file} is left to learn from ({reasons}): say the kinds of some")
    holes = [(row, chosen.name(i)) for i in kept if (row := columns[i].first_missing) is not None]
    if missing == "error" and holes:
        row, name = min(holes)
        place = chosen.place(row)
        raise DataError(f'{place} has a missing cell in column "{name}": fill or drop it, or say missing=learn')
    if unseen == "other":
        kept = {i: merge_rare(column, columns[i]) for i, column in kept.items()}
    ignored = tuple((chosen.name(i), reason) for i, reason in without.items())
    return _learned(chosen, MixedSpace.of(tuple(kept.values()), ignored, unseen), without)


def _learned(chosen: Selection, space: MixedSpace | None, without: Mapping[int, str]) -> Learned:
    features = tuple(i for i in chosen.features if i not in without)
    return Learned(
        replace(chosen, features=features), space, tuple((chosen.name(i), reason) for i, reason in without.items())
    )


def _left_out(kind: Asked | None) -> str:
    return {"ignore": AS_SAID, "label": "a label"}.get(kind or "", "")


def _by_name(chosen: Selection, asked: Mapping[str, Asked]) -> dict[str, Asked]:
    """Kinds by the columns' names; a column may also be called by its number from 1."""
    names = chosen.learned
    kinds: dict[str, Asked] = {}
    for name, kind in asked.items():
        counts = name not in names and name.isdecimal() and 1 <= int(name) <= len(names)
        if name not in names and not counts:
            raise DataError(f'{chosen.file} has no column "{name}" to be {kind}{did_you_mean(name, names)}')
        kinds[names[int(name) - 1] if counts else name] = kind
    return kinds


def leave_out_row_numbers(chosen: Selection, x: Numbers) -> tuple[Learned, Numbers]:
    """A table of numbers alone (n, C) without its row numbers, by the rule of :func:`learn_space`."""
    without = {}
    for i, column in zip(chosen.features, x.T, strict=True):
        rises = len(column) > 0 and column[-1] - column[0] == len(column) - 1 and column[0] == np.floor(column[0])
        low = float(column[0]) if rises and bool((np.diff(column) == 1).all()) else None
        if reason := _numbers_rows(chosen, i, low, len(column)):
            without[i] = reason
    learned = _learned(chosen, None, without)
    if not learned.chosen.features:
        name = chosen.learned[0]
        raise DataError(f"{chosen.file} holds row numbers alone: say the kind of a column, such as {name}:number")
    return learned, x[:, [i not in without for i in chosen.features]] if without else x


def _numbers_rows(chosen: Selection, column: int, low: float | None, rows: int) -> str:
    """Why a column that counts up from ``low`` (None: does not count) is left out; empty where it is learned from."""
    if column == chosen.unnamed:
        if rows and low not in (0, 1):
            raise no_name(chosen, column)
        return f"{ROW_NUMBERS} without a name"
    if chosen.said or low is None or not are_row_numbers(chosen.name(column), low, rows):
        return ""
    return ROW_NUMBERS


def read_mixed(learned: Learned, read: Raw) -> tuple[MixedSpace, Numbers, dict[str, Array]]:
    """The cells (n, C) of a table whose columns have kinds, and its labels; the space knows which counts are which."""
    assert learned.space is not None
    x, labels = gather(learned.chosen, encoded(learned.space, learned.chosen, read))
    return choose_counts(learned.space, x), x, labels


def encoded(space: TableSpace, chosen: Selection, read: Raw, unseen: Unseen = "error") -> Cells:
    """The cells of the chosen columns as numbers, NaN for missing ones, block by block."""
    start = 0
    for raw in read(chosen):
        first = start

        def where(i: int, first: int = first) -> str:
            return chosen.place(first + i)

        values = np.empty((len(raw), space.x_shape[0]))
        for i, (column, cells) in enumerate(zip(space.written, raw.columns, strict=True)):
            values[:, i] = encode_column(column, cells, where, unseen)
        check_cells(chosen, values, start, missing=True)
        yield values, raw
        start += len(raw)


def encode_column(column: Column, raw: RawColumn, where: Callable[[int], str], unseen: Unseen = "error") -> Numbers:
    """Cells as numbers, (n,); ``where(i)`` names the row of a cell that cannot be one."""
    if not column.has_levels:
        cells, wrong = raw.as_numbers()
        if wrong is not None:
            advice = raw.form.advice([raw.word(wrong)]) if raw.form else ""
            problem = f'{where(wrong)} has {raw.shown(wrong)} in column "{column.name}", not a number'
            raise DataError(problem + (advice and f": {advice}"))
        if column.is_count:
            _require_counts(column, cells, where)
        return cells
    positions: dict[Any, int] = {level: i for i, level in enumerate(column.levels)}
    if all(isinstance(level, str) for level in column.levels) and not raw.boolean:
        result = raw.look_up(positions)
    else:
        result = np.array([positions.get(value, -1) for value in _level_values(column, raw)], np.float64)
    unknown = np.flatnonzero((result < 0) & ~raw.missing())
    if column.other:
        result[unknown] = positions[column.other]
    elif len(unknown) and unseen == "error":
        first = int(unknown[0])
        near = did_you_mean(raw.word(first), [str(level) for level in column.levels])
        raise DataError(
            f'{where(first)} has {raw.shown(first)} in column "{column.name}", which training did not see{near}; '
            "correct it, or say unseen=missing or unseen=other"
        )
    result[result < 0] = math.nan
    return result


def _level_values(column: Column, raw: RawColumn) -> Sequence[Any]:
    """The cells as levels that are truth values or numbers; ``true`` in a file is True in a data frame."""
    numbers: list[float] = raw.as_numbers()[0].tolist()
    if isinstance(column.levels[0], str):
        truth = {_TRUTH[level.lower()]: level for level in map(str, column.levels) if level.lower() in _TRUTH}
        return [truth.get(bool(number)) if number in (0, 1) else None for number in numbers]
    if isinstance(column.levels[0], bool) and not raw.is_numeric:
        return [_TRUTH.get(str(word).lower(), number) for word, number in zip(raw.words(), numbers, strict=True)]
    return numbers


def _require_counts(column: Column, cells: Numbers, where: Callable[[int], str]) -> None:
    wrong = np.flatnonzero(~((cells >= 0) & (cells == np.floor(cells))) & ~np.isnan(cells))
    if len(wrong):
        problem = f'{where(int(wrong[0]))} has {cells[wrong[0]]:g} in column "{column.name}", which is no count'
        if column.name.isdecimal() and not column.dtype:  # an array has no names to say kinds by
            raise DataError(f"{problem}: correct it, or train on a table that names the column and say it is a number")
        raise KindError(problem, "correct it, or train with {number}", column.name)
