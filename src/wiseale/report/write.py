"""Write a document to disk: the page as HTML or Markdown, and each of its tables as CSV and JSON."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from pathlib import Path

from wiseale.platform.atomic_files import write_text
from wiseale.platform.json_files import to_json
from wiseale.report.document import Block, Commands, Definitions, Document, Paragraph, Picture, Table
from wiseale.report.html import to_html


def write_report(document: Document, out: Path, markdown: bool = False) -> Path:
    """Write ``report.html`` (or ``report.md``) and ``tables/``, and return the path of the page."""
    tables = out / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    on_page = [block for section in document.sections for block in section.blocks if isinstance(block, Table)]
    for table in (*on_page, *document.data):
        write_text(tables / f"{table.name}.csv", csv_text((table.columns, *table.rows)))
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        write_text(tables / f"{table.name}.json", to_json(rows))
    page = out / ("report.md" if markdown else "report.html")
    write_text(page, to_markdown(document, out) if markdown else to_html(document))
    return page


def csv_text(lines: Iterable[Iterable[object]]) -> str:
    r"""Lines of cells as CSV.

    >>> csv_text([("system", "mse"), ("WiSE-ALE, weight 1", 0.25)])
    'system,mse\n"WiSE-ALE, weight 1",0.25\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


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
