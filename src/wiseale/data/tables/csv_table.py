"""Tables as text: cells separated by comma, semicolon, tab or bar, with or without a header; read in blocks.

Arrow parses the text. Where it and the csv module differ, the csv module decides: it takes over from the first row that
Arrow refuses, and its records tell errors which line a row stands in.
"""

from __future__ import annotations

import csv
import itertools
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from wiseale.config import setting
from wiseale.data.tables.blocks import RawBlock, Selection
from wiseale.data.tables.csv_form import Form, find_form, opened
from wiseale.data.tables.raw import MISSING_WORDS, RawColumn, parse
from wiseale.data.tables.table import Reader, TableFile
from wiseale.errors import DataError, counted

_BLOCK = 1 << 20  # bytes of text that Arrow parses at a time
_LARGEST_BLOCK = 1 << 24
_ROWS = 256  # of a wide table in a block, so that Arrow's cost for each column stays small
_CELLS = 1 << 16  # in a block of the csv module
_SPACE = "".join(chr(i) for i in range(0x3001) if chr(i).isspace() and not 0x1C <= i <= 0x1F)
"""What may surround a cell: Python's white space but for control characters, which no number may hold."""


@dataclass(frozen=True)
class CsvFile(TableFile):
    """A table as text; separator and header are detected unless they are given."""

    separator: Literal["auto", "comma", "semicolon", "tab", "bar"] = setting("auto", "what stands between cells")
    header: Literal["auto", "true", "false"] = setting("auto", "whether the first line names the columns")
    decimal: Literal["point", "comma"] = setting("point", "what stands before the decimals")

    def open(self, path: Path) -> tuple[Sequence[str], Reader]:
        """Detect the form and read the names of the columns."""
        form = find_form(path, self.separator, self.header, self.decimal)
        reader = _CsvReader(path, form)
        return form.names, Reader(reader.raw, form, reader.line_of)


@dataclass(frozen=True)
class _CsvReader:
    path: Path
    form: Form

    def raw(self, chosen: Selection) -> Iterator[RawBlock]:
        columns, width, rows = (*chosen.features, *chosen.labels), len(chosen.features), 0
        if not self.form.spaced and (len(self.form.names) > 1 or not _has_empty_lines(self.path)):
            try:
                for cells in self._parsed(columns):
                    block = RawBlock(self._columns(cells[:width], parsed=True), _labels(cells[width:], parsed=True))
                    yield block
                    rows += len(block)
                return
            except (pa.ArrowInvalid, pa.ArrowKeyError):
                pass
            except OSError as error:
                raise DataError(f"cannot read {self.path}: {error.strerror}") from None
        records = itertools.islice(self._records(), rows, None)
        while part := list(itertools.islice(records, max(1, _CELLS // len(columns)))):
            cells = [pa.array([record[i] for _, record in part], pa.string()) for i in columns]
            yield RawBlock(self._columns(cells[:width]), _labels(cells[width:]))

    def line_of(self, row: int) -> int | None:
        """The line in which a row of data, counted from 0, ends; None if there is no such row."""
        return next((line for line, _ in itertools.islice(self._records(), row, None)), None)

    def _parsed(self, columns: Sequence[int]) -> Iterator[list[pa.StringArray]]:
        """The cells of columns as Arrow parses them, block by block; ArrowInvalid where the csv module has to."""
        names = [f"f{i}" for i in columns]
        size = min(max(_BLOCK, _ROWS * self.form.line_bytes), _LARGEST_BLOCK)
        batches = arrow_csv.open_csv(
            pa.memory_map(str(self.path)),  # Arrow reads 32 blocks ahead: mapped, they take no memory
            arrow_csv.ReadOptions(use_threads=False, block_size=size, autogenerate_column_names=True),
            arrow_csv.ParseOptions(delimiter=self.form.separator, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                include_columns=list(dict.fromkeys(names)), column_types=dict.fromkeys(names, pa.string())
            ),
        )
        header = self.form.header
        for batch in batches:
            rows = batch.slice(header)
            header = False
            if len(rows):
                yield [rows.column(name) for name in names]

    def _columns(self, cells: list[pa.StringArray], *, parsed: bool = False) -> list[RawColumn]:
        """Cells without white space around them and missing words; those that are numbers are parsed together."""
        likely = [k for k, column in enumerate(cells) if self.form.is_number(column[0].as_py())]
        columns: dict[int, RawColumn] = {}
        if likely:
            together = pa.concat_arrays([cells[k] for k in likely])
            empty = pc.any(pc.equal(pc.binary_length(together), 0)).as_py()
            numbers = None if empty else parse(together, self.form.decimal)
            if numbers is None:
                together = _cleaned(together, parsed)
                numbers = parse(together, self.form.decimal)
            n = len(cells[0])
            for i, k in enumerate(likely):
                part = slice(i * n, (i + 1) * n)
                known = None if numbers is None else numbers[part]
                columns[k] = RawColumn(together[part], form=self.form, known=known)
        for k in set(range(len(cells))) - columns.keys():
            columns[k] = RawColumn(_words(cells[k], parsed), form=self.form)
        return [columns[k] for k in range(len(cells))]

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Line and cells of each row of data; a row of another width is refused, empty lines are skipped."""
        name, width, header, empty_line = self.path.name, len(self.form.names), self.form.header, 0
        with opened(self.path) as file:
            reader = csv.reader(file, delimiter=self.form.separator, skipinitialspace=True)
            for record in reader:
                if not record:
                    empty_line = reader.line_num
                elif header:
                    header = False
                elif len(record) != width:
                    raise DataError(
                        f"line {reader.line_num} of {name} has {counted(len(record), 'cell')} where {width} are "
                        "expected: add or remove cells, or quote those that hold the separator"
                    )
                elif empty_line and width == 1:
                    raise DataError(f"line {empty_line} of {name} is empty: fill or drop it; wiseale does not guess")
                else:
                    yield reader.line_num, record


def _has_empty_lines(path: Path) -> bool:
    """Whether lines before the last row may be empty: in a table of one column they are rows without a cell."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        if text[:1] in b"\r\n" or text[:4] in (b"\xef\xbb\xbf\r", b"\xef\xbb\xbf\n"):
            return True
        first = min((i for ends in (b"\n\n", b"\n\r", b"\r\r") if (i := text.find(ends)) >= 0), default=len(text))
        return any(text[i : i + _BLOCK].strip(b"\r\n") for i in range(first, len(text), _BLOCK))


def _labels(cells: list[pa.StringArray], *, parsed: bool = False) -> list[list[str]]:
    return [_trimmed(column, parsed).to_pylist() for column in cells]


def _words(cells: pa.StringArray, parsed: bool) -> pa.DictionaryArray:
    """Cells without white space around them, null where one is missing, each word stored once."""
    encoded = cells.dictionary_encode()
    cleaned = _cleaned(encoded.dictionary, parsed)
    if not cleaned.null_count and _size(cleaned) == _size(encoded.dictionary):
        return encoded
    words = cleaned.dictionary_encode()  # " a" and "a" are one
    return pa.DictionaryArray.from_arrays(words.indices.take(encoded.indices), words.dictionary)


def _size(text: pa.StringArray) -> int:
    return int(pc.sum(pc.binary_length(text)).as_py() or 0)


def _cleaned(cells: pa.StringArray, parsed: bool) -> pa.StringArray:
    """Cells without white space around them, null where one is missing."""
    cells = _trimmed(cells, parsed)
    missing = pc.is_in(cells, value_set=_missing_words())
    return pc.if_else(missing, None, cells) if pc.any(missing).as_py() else cells


def _trimmed(cells: pa.StringArray, parsed: bool) -> pa.StringArray:
    """Cells without white space around them; ArrowInvalid where Arrow ``parsed`` a quote after a space as text."""
    trimmed = pc.utf8_trim(cells, characters=_SPACE)
    if parsed and pc.any(pc.starts_with(trimmed, '"')).as_py() and pc.any(pc.starts_with(cells, " ")).as_py():
        raise pa.ArrowInvalid("the csv module alone takes a quote after a space for one")
    return trimmed


@cache
def _missing_words() -> pa.StringArray:
    """Every spelling of the missing words in small and capital letters."""
    spellings = (map("".join, itertools.product(*({c, c.upper()} for c in word))) for word in MISSING_WORDS)
    return pa.array(sorted(itertools.chain.from_iterable(spellings)))
