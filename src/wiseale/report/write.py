"""Write a document to disk: the page, and each of its tables as CSV and JSON."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from wiseale.platform.atomic_files import write_text
from wiseale.platform.json_files import to_json
from wiseale.report.document import Document, Table
from wiseale.report.html import to_html
from wiseale.report.markdown import to_markdown


def write_report(document: Document, out: Path, markdown: bool = False) -> Path:
    """Write ``report.html`` (or ``report.md``) and ``tables/``, and return the path of the page."""
    tables = out / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    shown = [block for section in document.sections for block in section.blocks if isinstance(block, Table)]
    for table in (*shown, *document.data):
        write_text(tables / f"{table.name}.csv", _csv(table))
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        write_text(tables / f"{table.name}.json", to_json(rows))
    page = out / ("report.md" if markdown else "report.html")
    write_text(page, to_markdown(document, out) if markdown else to_html(document))
    return page


def _csv(table: Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return text.getvalue()
