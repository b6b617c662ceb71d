"""The metrics as a table, ``RUN/metrics.csv``, for spreadsheets."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from wiseale.runs.directory import RunDirectory
from wiseale.runs.loggers.logger import Logger


@dataclass(frozen=True)
class CsvLogger(Logger):
    """One line per epoch; a cell is empty where the epoch has no such number."""

    @contextlib.contextmanager
    def opened(self, run: RunDirectory) -> Iterator[_Table]:
        """A table from the first epoch on."""
        path = run.path / "metrics.csv"
        path.unlink(missing_ok=True)
        yield _Table(path)


class _Table:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._columns: list[str] = []
        self._lines: list[Mapping[str, float]] = []

    def write(self, step: int, at: float, numbers: Mapping[str, float]) -> None:
        """Append a line, or write all again where there is a new column: held-out numbers may come epochs later."""
        line = {"step": step, **numbers}
        self._lines.append(line)
        new = [name for name in line if name not in self._columns]
        self._columns += new
        with self._path.open("w" if new else "a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self._columns)
            if new:
                writer.writeheader()
            writer.writerows(self._lines if new else [line])
