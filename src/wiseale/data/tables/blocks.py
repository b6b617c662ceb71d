"""Blocks of a table's rows: numbers or raw columns, and how numbers from many blocks become one matrix."""

from __future__ import annotations

import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wiseale.data.dataset import Array
from wiseale.data.finite import first_flaw
from wiseale.data.tables.columns import Selection
from wiseale.data.tables.raw import RawColumn
from wiseale.errors import DataError

_LONGEST_LABEL = 200  # characters; every row of a column takes the room of the longest


class CellError(DataError):
    """A cell is missing or no number: a table of numbers alone cannot hold it, one of columns with kinds may."""


@dataclass(frozen=True)
class Block:
    """Some rows: the features' values (rows, features), and the cells of each label column."""

    values: Array
    labels: Sequence[Sequence[str]]
    lines: Sequence[int] = ()


@dataclass(frozen=True)
class RawBlock:
    """Some rows: the features' columns as they are written, and the cells of each label column."""

    columns: Sequence[RawColumn]
    labels: Sequence[Sequence[str]]
    lines: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.columns[0])


def as_numbers(chosen: Selection, blocks: Iterable[RawBlock]) -> Iterator[Block]:
    """The features of each block as numbers, NaN for a missing cell; a CellError where a column holds anything else."""
    start = 0
    for raw in blocks:
        values = np.empty((len(raw), len(raw.columns)))
        wrong: dict[int, list[int]] = {}  # columns by the first row in which they do not hold a number
        for k, column in enumerate(raw.columns):
            values[:, k], row = column.as_numbers()
            if column.form is None and (column.holds or not column.is_numeric):
                raise CellError(_not_numbers(chosen, chosen.features[k], column.dtype))
            if row is not None:
                wrong.setdefault(row, []).append(k)
        if wrong:
            row = min(wrong)
            raise CellError(_not_a_number(chosen, raw, wrong[row], row, start))
        yield Block(values, raw.labels)
        start += len(raw)


def _not_numbers(chosen: Selection, i: int, dtype: str) -> str:
    return f"column {chosen.called([i])} of {chosen.file} holds {dtype}, not numbers: {_remedy(chosen, [i])}"


def _not_a_number(chosen: Selection, raw: RawBlock, columns: Sequence[int], row: int, start: int) -> str:
    column, i = raw.columns[columns[0]], chosen.features[columns[0]]
    cell, where, named = str(column.values[row]), place(chosen, start + row, None), f"column {chosen.called([i])}"
    if "\n" in cell:
        return f"{where} has a line break in {named}: a quote before it may not be closed"
    if column.form and (advice := column.form.advice([cell])):
        return f"{where} has {cell!r} in {named}: {advice}"
    remedy = _remedy(chosen, [chosen.features[k] for k in columns])
    return f"{where} has {column.shown(row)} in {named}, which is not a number: {remedy}"


def _remedy(chosen: Selection, columns: Sequence[int]) -> str:
    return (
        f"leave it out with {chosen.file}:drop={chosen.spelled(columns)}, "
        f"or colour plots by it with {chosen.file}:labels={chosen.spelled(columns[:1])}"
    )


class _Labels:
    """A column of labels: each word stored once, each row as the number of its word."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._numbers: dict[str, int] = {}
        self._rows = array.array("q")

    def add(self, cells: Iterable[str]) -> None:
        numbers = self._numbers
        self._rows.extend(numbers.setdefault(cell, len(numbers)) for cell in cells)

    def finish(self, file: str) -> Array:
        """(n,) int64 if every label is a whole number, float64 if every one is a number, else text."""
        words = list(self._numbers)
        if longest := next((word for word in words if len(word) > _LONGEST_LABEL), None):
            raise DataError(f'column "{self.name}" of {file} is too long for labels: {longest[:20]!r}… goes on')
        return _as_numbers(words)[np.frombuffer(self._rows, np.int64)]


def _as_numbers(words: list[str]) -> Array:
    if not words or "_" in "".join(words):  # Python reads 2020_01 as a number; people do not
        return np.array(words, str)
    try:
        return np.array([int(word) for word in words], np.int64)
    except (ValueError, OverflowError):
        pass
    try:
        return np.array([float(word) for word in words])
    except ValueError:
        return np.array(words)


def gather(chosen: Selection, blocks: Iterable[Block], *, missing: bool = False) -> tuple[Array, dict[str, Array]]:
    """Features (n, features) in float64, and labels by name; a cell that is not finite is refused.

    NaN is a missing cell where ``missing`` says so.
    """
    parts: list[Array] = []
    labels = [_Labels(chosen.names[i] or str(i + 1)) for i in chosen.labels]
    n = 0
    for block in blocks:
        check_cells(chosen, block, n, missing=missing)
        for label, cells in zip(labels, block.labels, strict=True):
            label.add(cells)
        parts.append(block.values)
        n += len(block.values)
    x = np.empty((n, len(chosen.features)))
    parts.reverse()
    start = 0
    while parts:  # each part is let go once copied, so that the peak stays near the size of x
        part = parts.pop()
        x[start : start + len(part)] = part
        start += len(part)
    return x, {label.name: label.finish(chosen.file) for label in labels}


def check_cells(chosen: Selection, block: Block, start: int, *, missing: bool = False) -> None:
    """Refuse a block, which begins at row ``start``, that has a cell that is not finite; NaN may stand for missing."""
    flaw = first_flaw(block.values, missing=missing)
    if flaw is not None:
        row, column = flaw.index
        where = place(chosen, start + row, None)
        named = chosen.called([chosen.features[column]])
        refusal, problem = (CellError, "a missing cell") if flaw.problem == "NaN" else (DataError, flaw.problem)
        raise refusal(f"{where} has {problem} in column {named}: fill or drop it; wiseale does not guess")


def place(chosen: Selection, row: int, line: int | None) -> str:
    """``row 17 of sales.csv (line 18)``: rows of data are counted from 1, without the header."""
    line = line or (chosen.line_of and chosen.line_of(row))
    return f"row {row + 1} of {chosen.file} ({'counted from 1' if line is None else f'line {line}'})"
