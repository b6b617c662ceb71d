"""The content of a report, independent of its format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Paragraph:
    """Plain text."""

    text: str


@dataclass(frozen=True)
class Commands:
    """Shell commands, one per line."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table of text cells; ``name`` is the stem of the CSV and JSON files it is also written to."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Picture:
    """A PNG file with its caption."""

    path: Path
    caption: str


@dataclass(frozen=True)
class Definitions:
    """Terms and what they mean; on a page they are folded away below the title."""

    title: str
    entries: tuple[tuple[str, str], ...]


Block = Paragraph | Commands | Table | Picture | Definitions


@dataclass(frozen=True)
class Section:
    """A heading and the blocks below it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A report; the tables in ``data`` are written as files only, not shown on the page."""

    title: str
    lead: str
    sections: tuple[Section, ...]
    data: tuple[Table, ...] = ()
