"""Tables as text: cells separated by comma, semicolon, tab or bar, with or without a header; read in blocks."""

from __future__ import annotations

import csv
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

import numpy as np

from wiseale.config import setting
from wiseale.data.dataset import Array
from wiseale.data.tables.blocks import Block, CellError, RawBlock, place
from wiseale.data.tables.columns import Selection
from wiseale.data.tables.csv_form import Form, find_form
from wiseale.data.tables.raw import MISSING_WORDS, RawColumn
from wiseale.data.tables.table import Reader, TableFile
from wiseale.errors import DataError

_CELLS = 1 << 16  # numbers in a block


@dataclass(frozen=True)
class CsvFile(TableFile):
    """A table as text; separator and header are detected unless they are given."""

    separator: Literal["auto", "comma", "semicolon", "tab", "bar"] = setting("auto", "what stands between cells")
    header: Literal["auto", "true", "false"] = setting("auto", "whether the first line names the columns")
    decimal: Literal["point", "comma"] = setting("point", "what stands before the decimals")

    def open(self, path: Path) -> tuple[Sequence[str], Reader]:
        """Detect the form and read the names of the columns."""
        form = find_form(path, self.separator, self.header, self.decimal)
        return form.names, _CsvReader(path, form)


@dataclass(frozen=True)
class _CsvReader:
    path: Path
    form: Form

    def __call__(self, chosen: Selection) -> Iterator[Block]:
        n = 0
        for cells, labels, lines in self._read(chosen):
            yield Block(self._numbers(cells, chosen, n, lines), labels, lines)
            n += len(lines)

    def raw(self, chosen: Selection) -> Iterator[RawBlock]:
        width = len(chosen.features)
        for cells, labels, lines in self._read(chosen):
            written = [None if cell.strip().lower() in MISSING_WORDS else cell.strip() for cell in cells]
            columns = [RawColumn(written[i::width], form=self.form) for i in range(width)]
            yield RawBlock(columns, labels, lines)

    def _read(self, chosen: Selection) -> Iterator[tuple[list[str], list[list[str]], list[int]]]:
        """Cells (rows · features), cells of the label columns and lines, block by block."""
        try:
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                yield from self._blocks(file, chosen)
        except UnicodeDecodeError:
            raise DataError(f"{chosen.file} is not UTF-8 text: save it as UTF-8") from None
        except csv.Error as error:
            raise DataError(f"{chosen.file} is not a table of text: {error}") from None
        except OSError as error:
            raise DataError(f"cannot read {self.path}: {error.strerror}") from None

    def _blocks(self, file: TextIO, chosen: Selection) -> Iterator[tuple[list[str], list[list[str]], list[int]]]:
        pick, most = _picker(chosen.features), max(1, _CELLS // len(chosen.features))
        records = self._records(file, chosen.file)
        while True:
            cells: list[str] = []
            lines: list[int] = []
            labels: list[list[str]] = [[] for _ in chosen.labels]
            for line, record in itertools.islice(records, most):
                cells.extend(pick(record))
                lines.append(line)
                for label, column in zip(labels, chosen.labels, strict=True):
                    label.append(record[column].strip())
            if not lines:
                return
            yield cells, labels, lines

    def _numbers(self, cells: list[str], chosen: Selection, n: int, lines: list[int]) -> Array:
        """The cells (rows · features) of rows from the n-th on, as numbers (rows, features)."""
        width = len(chosen.features)
        try:
            return np.array(self.form.numbers(cells)).reshape(-1, width)
        except ValueError:
            row = next(i for i, cell in enumerate(cells) if not self.form.is_number(cell)) // width
        raise CellError(self._not_a_number(chosen, cells[row * width : (row + 1) * width], n + row, lines[row]))

    def _records(self, file: TextIO, name: str) -> Iterator[tuple[int, list[str]]]:
        """Line and cells of each row of data; a row of another width is refused, empty lines are skipped."""
        reader = csv.reader(file, delimiter=self.form.separator, skipinitialspace=True)
        width, header, empty_line = len(self.form.names), self.form.header, 0
        for record in reader:
            if not record:
                empty_line = reader.line_num
            elif header:
                header = False
            elif len(record) != width:
                cells = f"{len(record)} cell{'s' * (len(record) != 1)}"
                raise DataError(
                    f"line {reader.line_num} of {name} has {cells} where {width} are expected: "
                    "add or remove cells, or quote those that hold the separator"
                )
            elif empty_line and width == 1:
                raise DataError(f"line {empty_line} of {name} is empty: fill or drop it; wiseale does not guess")
            else:
                yield reader.line_num, record

    def _not_a_number(self, chosen: Selection, cells: Sequence[str], row: int, line: int) -> str:
        # Stripped only where that makes no number of it: strip() removes control characters that no number may hold.
        stripped = (c if self.form.is_number(c.strip()) else c.strip() for c in cells)
        held = dict(zip(chosen.features, stripped, strict=True))
        wrong = [i for i in chosen.features if not self.form.is_number(held[i])]
        cell, where, named = held[wrong[0]], place(chosen, row, line), f"column {chosen.called(wrong[:1])}"
        if "\n" in cell:
            return f"{where} has a line break in {named}: a quote before it may not be closed"
        if not cell:
            return f"{where} has an empty cell in {named}: fill or drop it; wiseale does not guess"
        if cell.lower() in MISSING_WORDS:
            return f"{where} has {cell!r} in {named}: fill or drop it; wiseale does not guess"
        if advice := self.form.advice([cell]):
            return f"{where} has {cell!r} in {named}: {advice}"
        columns = chosen.spelled(i for i in wrong if held[i].lower() not in MISSING_WORDS)
        shown = cell if len(cell) <= 40 else f"{cell[:40]}…"
        return (
            f"{where} has {shown!r} in {named}, which is not a number: leave it out with "
            f"{chosen.file}:drop={columns}, or colour plots by it with {chosen.file}:labels={chosen.spelled(wrong[:1])}"
        )


def _picker(columns: Sequence[int]) -> Callable[[Sequence[str]], Iterable[str]]:
    if len(columns) == 1:
        column = columns[0]
        return lambda record: (record[column],)
    return operator.itemgetter(*columns)
