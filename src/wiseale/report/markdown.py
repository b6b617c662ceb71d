"""Write a document as Markdown, with relative paths to its figures."""

from __future__ import annotations

import os
from pathlib import Path

from wiseale.report.document import Block, Commands, Definitions, Document, Paragraph, Picture, Table


def to_markdown(document: Document, folder: Path) -> str:
    """The document as Markdown; paths of figures are relative to ``folder``, where the page is written."""
    parts = [f"# {_escape(document.title)}", _escape(document.lead)]
    for section in document.sections:
        parts.append(f"## {_escape(section.title)}")
        parts += [to_block(block, folder) for block in section.blocks]
    return "\n\n".join(parts) + "\n"


def to_block(block: Block, folder: Path | None = None) -> str:
    """One block as Markdown; paths of figures are relative to ``folder``, by default the current one."""
    match block:
        case Paragraph(text):
            return _escape(text)
        case Commands(lines):
            return "```sh\n" + "\n".join(lines) + "\n```"
        case Definitions(title, entries):
            items = (f"- **{_escape(name)}**: {_escape(text)}" for name, text in entries)
            return "\n".join([f"{_escape(title)}:\n", *items])
        case Picture(path, caption):
            address = os.path.relpath(path, folder or Path()).replace(" ", "%20")
            return f"![{_escape(caption)}]({address})\n\n*{_escape(caption)}*"
        case Table(_, columns, rows, caption):
            cells = [_row(columns), _row(tuple("---" for _ in columns)), *(_row(row) for row in rows)]
            return (f"{_escape(caption)}\n\n" if caption else "") + "\n".join(cells)


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_escape(cell) for cell in cells) + " |"


def _escape(text: str) -> str:
    """Escape characters that Markdown would read as formatting or HTML, and join lines."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())
