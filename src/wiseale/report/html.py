"""A document as one HTML file: nothing is loaded from elsewhere, no script is needed, all text is escaped."""

from __future__ import annotations

import base64
import re
from html import escape

from wiseale.report.document import Block, Commands, Document, Paragraph, Picture, Section, Table

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --page: #ffffff; --card: #f6f8fa; --line: #d0d7de;
  --held: #1a7f37; --not: #b42318; --open: #7a5d00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9ba6b2; --page: #0f1419; --card: #1a212a;
  --line: #323b46; --held: #56d364; --not: #ff8a80; --open: #e3b341; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 4rem; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem; padding-top: .4rem; border-top: 1px solid var(--line); }
p.lead, figcaption, caption { color: var(--soft); }
nav { margin: 1rem 0; font-size: .9rem; }
nav a { margin-right: 1rem; color: inherit; display: inline-block; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; margin: .6rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; caption-side: top; padding-bottom: .4rem; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
td { white-space: nowrap; }
th:first-child, td:first-child, .text th, .text td { text-align: left; }
.text td { white-space: normal; min-width: 8rem; }
td:first-child { white-space: normal; min-width: 9rem; max-width: 26rem; }
@media (min-width: 50rem) { td:first-child { min-width: 15rem; } }
th { border-bottom: 2px solid var(--line); }
pre { background: var(--card); padding: .8rem; overflow-x: auto; border-radius: 6px; font-size: .85rem; }
figure { margin: 1rem 0 1.6rem; }
figure img { max-width: 100%; height: auto; background: #fff; border-radius: 6px; padding: 4px; }
.held { color: var(--held); font-weight: 600; } .not { color: var(--not); font-weight: 600; }
.open { color: var(--open); font-weight: 600; }
@media print { body { max-width: none; } h2, figure { break-inside: avoid; } nav { display: none; } }
"""

_VERDICTS = {"held": "held", "not held": "not", "not decided": "open"}


def to_html(document: Document) -> str:
    """The whole page."""
    links = "".join(f'<a href="#{_anchor(s.title)}">{escape(s.title)}</a>' for s in document.sections)
    body = "".join(_section(section) for section in document.sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(document.title)}</title><style>{_STYLE}</style></head><body>"
        f'<h1>{escape(document.title)}</h1><p class="lead">{escape(document.lead)}</p><nav>{links}</nav>{body}'
        "</body></html>\n"
    )


def _section(section: Section) -> str:
    blocks = "".join(_block(block) for block in section.blocks)
    return f'<section id="{_anchor(section.title)}"><h2>{escape(section.title)}</h2>{blocks}</section>'


def _block(block: Block) -> str:
    match block:
        case Paragraph(text):
            return f"<p>{escape(text)}</p>"
        case Commands(lines):
            return f"<pre><code>{escape(chr(10).join(lines))}</code></pre>"
        case Picture(path, caption):
            data = base64.b64encode(path.read_bytes()).decode()
            text = escape(caption, quote=True)
            return (
                f'<figure><img src="data:image/png;base64,{data}" alt="{text}">'
                f"<figcaption>{escape(caption)}</figcaption></figure>"
            )
        case Table():
            return _table(block)


def _table(table: Table) -> str:
    wordy = any(len(cell) > 60 for row in table.rows for cell in row[1:])
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in table.rows)
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    kind = ' class="text"' if wordy else ""
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="scroll"><table{kind}>{caption}{body}</table></div>'


def _cell(cell: str) -> str:
    verdict = next((style for word, style in _VERDICTS.items() if re.match(rf"{word}\b", cell)), None)
    text = re.sub(r"([:,])(?=\S)", r"\1<wbr>", escape(cell))  # where name:key=value,key=value may be broken
    return f'<td class="{verdict}">{text}</td>' if verdict else f"<td>{text}</td>"


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
