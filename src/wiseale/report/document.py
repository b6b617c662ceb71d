"""A report: its content, and that as one self-contained HTML file or as Markdown, with every table as CSV and JSON."""

from __future__ import annotations

import base64
import csv
import io
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path

from wiseale.platform.atomic_files import write_text
from wiseale.platform.json_files import to_json


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


_CSS_PIXELS_PER_PIXEL = 100 / 150  # PNGs have 150 pixels per inch, shown at 100: text has one size in all figures
_MIN_SCALE = 0.62  # a narrow screen shrinks a figure this far, then scrolls it

_VERDICTS = {"held": "held", "not held": "not", "not decided": "open"}


def to_html(document: Document) -> str:
    """The document as an HTML page."""
    links = "".join(f'<a href="#{_anchor(s.title)}">{escape(s.title)}</a>' for s in document.sections)
    body = "".join(_section(section) for section in document.sections)
    style = resources.files("wiseale.report").joinpath("style.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(document.title)}</title><style>{style}</style></head><body>"
        f'<h1>{escape(document.title)}</h1><p class="lead">{escape(document.lead)}</p><nav>{links}</nav>{body}'
        "</body></html>\n"
    )


def _section(section: Section) -> str:
    blocks = "".join(_html_block(block) for block in section.blocks)
    return f'<section id="{_anchor(section.title)}"><h2>{escape(section.title)}</h2>{blocks}</section>'


def _html_block(block: Block) -> str:
    match block:
        case Paragraph(text):
            return f"<p>{escape(text)}</p>"
        case Commands(lines):
            return f"<pre><code>{escape(chr(10).join(lines))}</code></pre>"
        case Definitions(title, entries):
            terms = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in entries)
            return f"<details><summary>{escape(title)}</summary><dl>{terms}</dl></details>"
        case Picture(path, caption):
            png = path.read_bytes()
            width = round(int.from_bytes(png[16:20]) * _CSS_PIXELS_PER_PIXEL)  # bytes 16 to 19 of a PNG are its width
            data, text = base64.b64encode(png).decode(), escape(caption, quote=True)
            limit = f"max-width: max(100%, {round(_MIN_SCALE * width)}px)"
            return (
                f'<figure><img src="data:image/png;base64,{data}" width="{width}" style="{limit}" alt="{text}">'
                f"<figcaption>{escape(caption)}</figcaption></figure>"
            )
        case Table():
            return _html_table(block)


def _html_table(table: Table) -> str:
    wordy = len(table.columns) == 2 or any(len(cell) > 60 for row in table.rows for cell in row[1:])
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = "".join("<tr>" + "".join(_html_cell(cell) for cell in row) + "</tr>" for row in table.rows)
    # Not a <caption>, which would be as wide as the table and scroll with it.
    caption = f'<p class="above">{escape(table.caption)}</p>' if table.caption else ""
    named = any(len(row[0]) > 20 for row in table.rows)
    kind = ' class="text"' if wordy else ' class="named"' if named else ""
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'{caption}<div class="scroll"><table{kind}>{body}</table></div>'


def _html_cell(cell: str) -> str:
    verdict = _VERDICTS.get(cell)
    lines = (re.sub(r"([:,_])(?=\S)", r"\1<wbr>", escape(part)) for part in cell.split("; "))  # name:<wbr>key=value
    text = ";<br>".join(lines)
    return f'<td class="verdict {verdict}">{text}</td>' if verdict else f"<td>{text}</td>"


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


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
    parts = [f"# {_markdown_text(document.title)}", _markdown_text(document.lead)]
    for section in document.sections:
        parts.append(f"## {_markdown_text(section.title)}")
        parts += [to_block(block, folder) for block in section.blocks]
    return "\n\n".join(parts) + "\n"


def to_block(block: Block, folder: Path | None = None) -> str:
    """One block as Markdown; paths of figures are relative to ``folder``, by default the current one."""
    match block:
        case Paragraph(text):
            return _markdown_text(text)
        case Commands(lines):
            return "```sh\n" + "\n".join(lines) + "\n```"
        case Definitions(title, entries):
            items = (f"- **{_markdown_text(name)}**: {_markdown_text(text)}" for name, text in entries)
            return "\n".join([f"{_markdown_text(title)}:\n", *items])
        case Picture(path, caption):
            address = os.path.relpath(path, folder or Path()).replace(" ", "%20")
            return f"![{_markdown_text(caption)}]({address})\n\n*{_markdown_text(caption)}*"
        case Table(_, columns, rows, caption):
            cells = [
                _markdown_row(columns),
                _markdown_row(tuple("---" for _ in columns)),
                *(_markdown_row(row) for row in rows),
            ]
            return (f"{_markdown_text(caption)}\n\n" if caption else "") + "\n".join(cells)


def _markdown_row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_markdown_text(cell) for cell in cells) + " |"


def _markdown_text(text: str) -> str:
    """Escape characters that Markdown would read as formatting or HTML, and join lines."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())
