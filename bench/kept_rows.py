"""Measurements kept as CSV, one row each, so that a benchmark of hours can be interrupted and continued."""

from __future__ import annotations

import csv
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

R = TypeVar("R")

_CONVERT = {"str": str, "int": int, "int | None": int, "float": float, "float | None": float}


def read_rows(path: Path, kind: type[R]) -> list[R]:
    """The rows of a CSV file as dataclasses of this kind, in order; none where there is no file."""
    if not path.exists():
        return []
    columns: Any = fields(kind)  # type: ignore[arg-type]
    with path.open(newline="", encoding="utf-8") as file:
        return [
            kind(**{c.name: _CONVERT[str(c.type)](line[c.name]) if line[c.name] else None for c in columns})
            for line in csv.DictReader(file)
        ]


def append_row(path: Path, row: Any) -> None:
    """Add a dataclass as the last row; a new file gets a header."""
    new = not path.exists()
    values = {name: f"{v:.6g}" if isinstance(v, float) else v for name, v in asdict(row).items()}
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(values), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(values)
