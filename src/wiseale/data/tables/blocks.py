"""The chosen columns of a table, blocks of its rows, and how numbers from many blocks become one matrix."""

from __future__ import annotations

import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from wiseale.data.dataset import Array, first_flaw
from wiseale.data.tables.raw import Numbers, RawColumn
from wiseale.errors import DataError
from wiseale.registry import did_you_mean

_LONGEST_LABEL = 200  # characters; every row of a column takes the room of the longest
_LISTED = 20  # names an error shows
_LONGEST = 60  # characters it shows of each


class CellError(DataError):
    """A cell is missing or no number: a table of numbers alone cannot hold it, one of columns with kinds may."""


@dataclass(frozen=True)
class Selection:
    """Columns of a file: all their names, and the positions of the features and of the labels, counted from 0.

    Attributes:
        said: whether the user named the features; row numbers among them are then meant.
        unnamed: position of a column that has no name while others do: it is left out if it numbers the rows, as the
            index that pandas writes does, and refused otherwise.
        line_of: the line of a row of data, counted from 0, in a file of text; None for other tables.
    """

    file: str
    names: tuple[str, ...]
    features: tuple[int, ...]
    labels: tuple[int, ...]
    said: bool = False
    unnamed: int | None = None
    line_of: Callable[[int], int | None] | None = field(default=None, compare=False)

    def name(self, column: int) -> str:
        """A column's name, its number from 1 where it has none."""
        return self.names[column] or str(column + 1)

    @property
    def learned(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(map(self.name, self.features))

    def place(self, row: int) -> str:
        """``row 17 of sales.csv (line 18)``: rows of data are counted from 1, without the header."""
        line = self.line_of and self.line_of(row)
        return f"row {row + 1} of {self.file} ({'counted from 1' if line is None else f'line {line}'})"

    def called(self, column: int) -> str:
        """A column as a sentence names it: ``"price"``, or ``3`` where there is no name."""
        return _quoted(self.names[column]) if self.names[column] else str(column + 1)

    def remedy(self, columns: Sequence[int]) -> str:
        """What to do about columns that hold no numbers; by number where a name would be misread."""
        safe = [str(i + 1) if set(self.names[i]) & set(",=\n\r") else self.name(i) for i in columns]
        return (
            f"leave it out with {self.file}:drop={','.join(safe)}, "
            f"or colour plots by it with {self.file}:labels={safe[0]}"
        )


def select(
    file: str,
    names: Sequence[str],
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    labels: Sequence[str] = (),
    *,
    row_numbers: bool = False,
    line_of: Callable[[int], int | None] | None = None,
) -> Selection:
    """Find the columns asked for; without any, all that are neither dropped nor labels are features.

    A column without a name must be asked for; with ``row_numbers`` the first may be among the features, as ``unnamed``.
    """
    names = tuple(names)
    for name, times in Counter(names).items():
        if name and times > 1:
            numbers = " and ".join(str(i + 1) for i, other in enumerate(names) if other == name)
            raise DataError(f"{file} has several columns named {_quoted(name)} (columns {numbers}): rename them")
    wanted, left_out, factors = (
        tuple(_position(file, names, name) for name in given) for given in (columns, drop, labels)
    )
    features = wanted or tuple(i for i in range(len(names)) if i not in factors)
    features = tuple(dict.fromkeys(i for i in features if i not in left_out))
    selection = Selection(file, names, features, factors, said=bool(wanted), line_of=line_of)
    if not features:
        raise DataError(f"no column of {file} is left to learn from: {_listed(names)}")
    unnamed = [i for i in features if not names[i]]
    if unnamed and not wanted:
        if not row_numbers or unnamed != [0]:
            raise no_name(selection, unnamed[0])
        return replace(selection, unnamed=0)
    return selection


def no_name(chosen: Selection, column: int) -> DataError:
    """The error about a column without a name."""
    number, file = column + 1, chosen.file
    return DataError(
        f"column {number} of {file} has no name, and may be a row number: "
        f"leave it out with {file}:drop={number}, or choose the others with {file}:columns=…"
    )


def _position(file: str, names: tuple[str, ...], name: str) -> int:
    if name in names:
        return names.index(name)
    if name.isdecimal() and 1 <= int(name) <= len(names):
        return int(name) - 1
    raise DataError(f'{file} has no column "{name}"{did_you_mean(name, names)} ({_listed(names)})')


def _listed(names: tuple[str, ...]) -> str:
    known = ", ".join(_quoted(name) for name in names[:_LISTED] if name)
    return f"it has {known}{', …' if len(names) > _LISTED else ''}"


def _quoted(name: str) -> str:
    """A name on one line, cut where it is long."""
    shown = " ".join(name.split())
    return f'"{shown}"' if len(shown) <= _LONGEST else f'"{shown[:_LONGEST]}…"'


@dataclass(frozen=True)
class RawBlock:
    """Some rows: the features' columns as they are written, and the cells of each label column."""

    columns: Sequence[RawColumn]
    labels: Sequence[Sequence[str]]

    def __len__(self) -> int:
        return len(self.columns[0])


Cells = Iterator[tuple[Numbers, RawBlock]]
"""Blocks of rows: the features as numbers (rows, features), and as they are written."""


def as_numbers(chosen: Selection, blocks: Iterable[RawBlock]) -> Cells:
    """The features of each block as finite numbers; a CellError where a cell is missing or no number."""
    start = 0
    for raw in blocks:
        values = np.empty((len(raw), len(raw.columns)))
        wrong: dict[int, list[int]] = {}  # columns by the first row in which they do not hold a number
        for k, column in enumerate(raw.columns):
            values[:, k], row = column.as_numbers()
            i = chosen.features[k]
            if column.form is None and (column.holds or not column.is_numeric):
                problem = f"column {chosen.called(i)} of {chosen.file} holds {column.dtype}, not numbers"
                raise CellError(f"{problem}: {chosen.remedy([i])}")
            if row is not None:
                wrong.setdefault(row, []).append(k)
        if wrong:
            row = min(wrong)
            raise CellError(_not_a_number(chosen, raw, wrong[row], row, start))
        check_cells(chosen, values, start)
        yield values, raw
        start += len(raw)


def _not_a_number(chosen: Selection, raw: RawBlock, columns: Sequence[int], row: int, start: int) -> str:
    column = raw.columns[columns[0]]
    cell, where, named = column.word(row), chosen.place(start + row), chosen.called(chosen.features[columns[0]])
    if "\n" in cell:
        return f"{where} has a line break in column {named}: a quote before it may not be closed"
    if column.form and (advice := column.form.advice([cell])):
        return f"{where} has {cell!r} in column {named}: {advice}"
    remedy = chosen.remedy([chosen.features[k] for k in columns])
    return f"{where} has {column.shown(row)} in column {named}, which is not a number: {remedy}"


def check_cells(chosen: Selection, values: Numbers, start: int, *, missing: bool = False) -> None:
    """Refuse a block, which begins at row ``start``, that has a cell that is not finite; NaN may stand for missing."""
    flaw = first_flaw(values, missing=missing)
    if flaw is not None:
        row, column = flaw.index
        named = chosen.called(chosen.features[column])
        refusal, problem = (CellError, "a missing cell") if flaw.problem == "NaN" else (DataError, flaw.problem)
        place = chosen.place(start + row)
        raise refusal(f"{place} has {problem} in column {named}: fill or drop it; wiseale does not guess")


def gather(chosen: Selection, blocks: Cells) -> tuple[Numbers, dict[str, Array]]:
    """Features (n, features) in float64, and labels by name."""
    parts: list[Numbers] = []
    labels = [_Labels(chosen.name(i)) for i in chosen.labels]
    n = 0
    for values, raw in blocks:
        for label, cells in zip(labels, raw.labels, strict=True):
            label.add(cells)
        parts.append(values)
        n += len(values)
    x = np.empty((n, len(chosen.features)))
    parts.reverse()
    start = 0
    while parts:  # each part is let go once copied, so that the peak stays near the size of x
        part = parts.pop()
        x[start : start + len(part)] = part
        start += len(part)
    return x, {label.name: label.finish(chosen.file) for label in labels}


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
        return _as_labels(words)[np.frombuffer(self._rows, np.int64)]


def _as_labels(words: list[str]) -> Array:
    if words and "_" not in "".join(words):  # Python reads 2020_01 as a number; people do not
        for convert, dtype in ((int, np.int64), (float, np.float64)):
            try:
                return np.array([convert(word) for word in words], dtype)
            except (ValueError, OverflowError):
                pass
    return np.array(words, str)
