"""What a page says, apart from how it is written down."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Paragraph:
    """Plain text."""

    text: str


@dataclass(frozen=True)
class Commands:
    """What to type, line by line."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Cells as text; ``name`` is the file it is also written to, numbers and all, as CSV and JSON."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Picture:
    """A PNG with what it shows in words."""

    path: Path
    caption: str


Block = Paragraph | Commands | Table | Picture


@dataclass(frozen=True)
class Section:
    """A heading and what follows it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A page; ``data`` are tables that are written beside it and not shown."""

    title: str
    lead: str
    sections: tuple[Section, ...]
    data: tuple[Table, ...] = ()
