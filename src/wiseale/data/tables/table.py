"""Users' tables: blocks of rows from any type of file become float64 columns, each cell a finite number."""

from __future__ import annotations

import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from wiseale.config import Settings, setting
from wiseale.data.dataset import Array, Dataset, Scaling
from wiseale.data.defaults import make_dataset
from wiseale.data.finite import first_flaw
from wiseale.data.tables.columns import Selection, select
from wiseale.errors import DataError

_LONGEST_LABEL = 200  # characters; every row takes the memory of the longest


@dataclass(frozen=True)
class Block:
    """Some rows: the features' values (rows, features), the cells of each label column, and the file's lines."""

    values: Array
    labels: Sequence[Sequence[str]]
    lines: Sequence[int] = ()


Reader = Callable[[Selection], Iterator[Block]]
"""Reads the chosen columns of a table, block by block, in order."""


@dataclass(frozen=True)
class TableFile(Settings):
    """Numbers in named columns; one row is one observation."""

    columns: tuple[str, ...] = setting((), "columns to learn from, by name or number from 1 (default: all)")
    drop: tuple[str, ...] = setting((), "columns to leave out")
    labels: tuple[str, ...] = setting((), "columns, of words or numbers, to colour plots by; never learned from")
    standardize: Literal["auto", "none", "columns", "global"] = setting("auto", "by which mean and scale")

    def load(self, path: Path, name: str, *, training: bool = True) -> Dataset:
        """Read the file; ``training=False`` accepts a single row."""
        names, read = self.open(path)
        chosen = select(path.name, names, self.columns, self.drop, self.labels)
        x, factors = gather(chosen, read(chosen))
        if len(x) < 1 + training:
            held = "no rows" if len(x) == 0 else "only 1 row"
            raise DataError(f"{path.name} has {held}: at least {1 + training} are needed")
        scaling: Scaling | None = None if self.standardize == "auto" else self.standardize
        columns = tuple(chosen.names[i] or str(i + 1) for i in chosen.features)
        return make_dataset(x, name, factors=factors, columns=columns, scaling=scaling)

    def open(self, path: Path) -> tuple[Sequence[str], Reader]:
        """The names of the columns, and a function that reads the chosen ones."""
        raise NotImplementedError


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


def gather(chosen: Selection, blocks: Iterable[Block]) -> tuple[Array, dict[str, Array]]:
    """Features (n, features) in float64, and labels by name; a cell that is not finite is refused."""
    parts: list[Array] = []
    labels = [_Labels(chosen.names[i] or str(i + 1)) for i in chosen.labels]
    n = 0
    for block in blocks:
        check_cells(chosen, block, n)
        for label, cells in zip(labels, block.labels, strict=True):
            label.add(cells)
        parts.append(block.values)
        n += len(block.values)
    x = np.empty((n, len(chosen.features)))
    parts.reverse()
    start = 0
    while parts:  # each part is freed once copied, so that peak memory stays near the size of x
        part = parts.pop()
        x[start : start + len(part)] = part
        start += len(part)
    return x, {label.name: label.finish(chosen.file) for label in labels}


def check_cells(chosen: Selection, block: Block, start: int) -> None:
    """Refuse a block, which begins at row ``start``, that has a cell that is not finite."""
    flaw = first_flaw(block.values)
    if flaw is not None:
        row, column = flaw.index
        where = place(chosen, start + row, block.lines[row] if block.lines else None)
        named = chosen.called([chosen.features[column]])
        raise DataError(f"{where} has {flaw.problem} in column {named}: fill or drop it; wiseale does not guess")


def place(chosen: Selection, row: int, line: int | None) -> str:
    """``row 17 of sales.csv (line 18)``: rows of data are counted from 1, without the header."""
    return f"row {row + 1} of {chosen.file} ({'counted from 1' if line is None else f'line {line}'})"
