"""The form of a text table: the separator of its cells, and whether its first line names the columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from wiseale.errors import DataError
from wiseale.spaces.columns import counted_names

_SEPARATORS = {"tab": "\t", "semicolon": ";", "bar": "|", "comma": ","}  # the rarer inside cells, the more preferred
_SAMPLE = 1 << 16  # characters looked at, and the rest of the line
_LEAST_LINES = 2  # a wide table's first line may be longer than the sample, and the second tells whether it is a header
_LONGEST_LINE = 1 << 26
_LONGEST_NUMBER = 40  # characters: matching takes time that grows with their square


@dataclass(frozen=True)
class Form:
    """How a table is written.

    Attributes:
        separator: what stands between cells.
        names: of the columns; numbers from 1 without a header.
        header: whether the first line names the columns.
        decimal: ``"point"`` or ``"comma"``.
        file: name of the file.
        line_bytes: size of a line, about.
        spaced: whether a quote may follow a space after a separator (``1, "a, b"``).
    """

    separator: str = ","
    names: tuple[str, ...] = ()
    header: bool = True
    decimal: str = "point"
    file: str = ""
    line_bytes: int = 0
    spaced: bool = False

    def number(self, cell: str) -> float | None:
        """A cell as a number; None if it is not one.

        >>> Form(";", (), True, "comma").number("2,5"), Form(";", (), True, "comma").number("2.5")
        (2.5, None)
        """
        return _number(cell, self.decimal)

    def is_number(self, cell: str | None) -> bool:
        """Whether a cell is a number, without white space around it."""
        return cell is not None and cell == cell.strip() and self.number(cell) is not None

    def advice(self, cells: Iterable[str]) -> str:
        """What to do about cells that are numbers with another decimal mark or thousands separators; empty if none is.

        >>> Form(";", (), True, "point", "sales.csv").advice(["2,5"])
        'write sales.csv:decimal=comma if that is a number'
        >>> Form(",", (), True, "point", "sales.csv").advice(["8,008"])
        'write 8008, without thousands separators, if that is a number'
        """
        mark, other = (".", ",") if self.decimal == "point" else (",", ".")
        numeric = re.compile(rf"[-+]?[\d{mark}{other}]*\{other}\d+[\d{mark}{other}]*")
        marked = [cell for cell in cells if len(cell) <= _LONGEST_NUMBER and numeric.fullmatch(cell)]
        if not marked:
            return ""
        grouped = re.compile(rf"[-+]?[1-9]\d{{0,2}}(\{other}\d{{3}})+(\{mark}\d*)?")
        first = next((cell for cell in marked if not grouped.fullmatch(cell)), None)
        form = f"{self.file}:decimal={'point' if other == '.' else 'comma'}"
        form += ",separator=comma" if other == self.separator else ""
        if first is not None:
            return f"write {form} if that is a number" if first.count(other) == 1 and mark not in first else ""
        plain = marked[0].replace(other, "")
        if other == self.separator or any(cell.count(other) > 1 or mark in cell for cell in marked):
            return f"write {plain}, without thousands separators, if that is a number"
        return f"write {plain} if that separates thousands, or {form} if it is the decimal mark"


def find_form(path: Path, separator: str, header: str, decimal: str) -> Form:
    """Detect the form from the beginning of a file; settings other than ``"auto"`` are used as given."""
    sample = _sample(path)
    if separator == "auto":
        separator = "tab" if path.suffix.lower() == ".tsv" else _guess_separator(sample, decimal)
    rows = _rows(sample, _SEPARATORS[separator])
    first, second = rows[0], rows[1] if len(rows) > 1 else []
    has_header = _guess_header(path.name, first, second, decimal) if header == "auto" else header == "true"
    names = tuple(" ".join(cell.split()) for cell in first) if has_header else counted_names(len(first))
    mark = _SEPARATORS[separator]
    spaced = re.search(rf'(?:^|[\r\n{re.escape(mark)}]) +"', sample) is not None
    return Form(mark, names, has_header, decimal, path.name, len(sample) // len(rows), spaced)


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """A table's text, for the csv module."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError:
        raise DataError(f"{path.name} is not UTF-8 text: save it as UTF-8") from None
    except csv.Error as error:
        raise DataError(f"{path.name} is not a table of text: {error}") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None


def _sample(path: Path) -> str:
    with opened(path) as file:
        lines: list[str] = []  # those that hold something
        size = 0
        while (len(lines) < _LEAST_LINES or size < _SAMPLE) and (line := file.readline(_LONGEST_LINE)):
            if line.strip("\r\n"):
                lines.append(line)
                size += len(line)
        sample = "".join(lines)
    if not sample.strip():
        raise DataError(f"{path.name} is empty")
    if "\0" in sample:
        raise DataError(f"{path.name} is not a table of text: it holds zero bytes")
    return sample


def _rows(sample: str, separator: str, most: int = 50) -> list[list[str]]:
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(sample, newline=""), delimiter=separator, skipinitialspace=True):
            rows += [row] if row else []
            if len(rows) == most:
                break
    except csv.Error:  # reading the whole file reports the line
        pass
    return rows or [[sample]]


def _guess_separator(sample: str, decimal: str) -> str:
    """The separator that cuts most lines into as many cells as the first, at least two."""
    agreeing = {}
    for name, separator in _SEPARATORS.items():
        if decimal == "comma" and name == "comma":
            continue
        rows = _rows(sample, separator)
        if len(rows[0]) > 1:
            agreeing[name] = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
    return max(agreeing, key=agreeing.__getitem__) if agreeing else "semicolon" if decimal == "comma" else "comma"


def _guess_header(file: str, first: list[str], second: list[str], decimal: str) -> bool:
    numbers = [_number(cell, decimal) is not None for cell in first]
    if not any(numbers):
        return True
    counting = [cell.strip() for cell in first if cell.strip()]
    starts = [[str(start + i) for i in range(len(counting))] for start in (0, 1)]
    if all(numbers) and not (len(counting) > 1 and counting in starts):  # 0,1,2 may be pandas' default names
        return False
    below = zip(first, numbers, second, strict=False)
    if any(cell.strip() and not number and _number(under, decimal) is not None for cell, number, under in below):
        return True
    settings = f"{file}:header=true or {file}:header=false"
    raise DataError(f"cannot tell whether the first line of {file} names its columns: write {settings}")


def _number(cell: str, decimal: str) -> float | None:
    if "_" in cell or (cell[:1].isalpha() and cell[0] not in "iInN"):  # Python takes 2020_01 for a number
        return None
    if decimal == "comma":
        if "." in cell:
            return None
        cell = cell.replace(",", ".", 1)
    try:
        return float(cell)
    except ValueError:
        return None
