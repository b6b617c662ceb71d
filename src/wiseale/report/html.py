"""Write a document as one self-contained HTML file: no external resources, no scripts, all text escaped."""

from __future__ import annotations

import base64
import re
from html import escape

from wiseale.report.document import Block, Commands, Definitions, Document, Paragraph, Picture, Section, Table

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --page: #ffffff; --card: #f6f8fa; --line: #d0d7de;
  --held: #1a7f37; --not: #b42318; --open: #7a5d00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9ba6b2; --page: #0f1419; --card: #1a212a;
  --line: #323b46; --held: #56d364; --not: #ff8a80; --open: #e3b341; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem 4rem; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
h1, h2, p, figcaption { overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem; padding-top: .4rem; border-top: 1px solid var(--line); }
p.lead, figcaption { color: var(--soft); }
nav { margin: 1rem 0; font-size: .9rem; }
nav a { margin-right: 1rem; color: inherit; display: inline-block; }
.scroll { overflow-x: auto; margin: .6rem 0 1.2rem; }
.above { color: var(--soft); font-size: .9rem; margin: 1rem 0 0; }
table { border-collapse: collapse; font-size: .82rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
td { white-space: nowrap; }
th:first-child, td:first-child, .text td, .text th { text-align: left; }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--page); }
.named td:first-child { white-space: normal; min-width: 15rem; max-width: 22rem; }
.text td { white-space: normal; overflow-wrap: anywhere; }
th { border-bottom: 2px solid var(--line); vertical-align: bottom; }
pre { background: var(--card); padding: .8rem; overflow-x: auto; border-radius: 6px; font-size: .82rem; }
details { margin: 1rem 0; font-size: .9rem; }
summary { cursor: pointer; }
dt { font-weight: 600; margin-top: .6rem; overflow-wrap: anywhere; }
dd { margin: .1rem 0 0 1.2rem; color: var(--soft); }
figure { margin: 1rem 0 1.8rem; overflow-x: auto; }
figure img { height: auto; background: #fff; border-radius: 6px; padding: 4px; }
figcaption { font-size: .9rem; position: sticky; left: 0; }
.text td.verdict { white-space: nowrap; font-weight: 600; }
.held { color: var(--held); } .not { color: var(--not); } .open { color: var(--open); }
@media (min-width: 50rem) { .text td:nth-child(2) { min-width: 18rem; } }
@media (max-width: 40rem) { h1 { font-size: 1.4rem; } .text td { min-width: 9rem; }
  .text td:nth-child(4) { min-width: 16rem; } .text td.verdict { min-width: 0; }
  .text td:first-child { overflow-wrap: break-word; min-width: 0; }
  .named td:first-child { min-width: 7rem; max-width: 9rem; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --page: #fff; --card: #f6f6f6; --line: #bbb;
  --held: #1a7f37; --not: #b42318; --open: #7a5d00; }
  body { max-width: none; font-size: 11px; } figure img { max-width: 100% !important; }
  .scroll, figure { overflow: visible; } pre { white-space: pre-wrap; } table { font-size: 8px; }
  h2 { break-after: avoid; } figure, tr { break-inside: avoid; } nav { display: none; } }
"""

_CSS_PIXELS_PER_PIXEL = 100 / 150  # PNGs have 150 pixels per inch, shown at 100: text has one size in all figures
_MIN_SCALE = 0.62  # a narrow screen shrinks a figure this far, then scrolls it

_VERDICTS = {"held": "held", "not held": "not", "not decided": "open"}


def to_html(document: Document) -> str:
    """The document as an HTML page."""
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
            return _table(block)


def _table(table: Table) -> str:
    wordy = len(table.columns) == 2 or any(len(cell) > 60 for row in table.rows for cell in row[1:])
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in table.rows)
    # Not a <caption>, which would be as wide as the table and scroll with it.
    caption = f'<p class="above">{escape(table.caption)}</p>' if table.caption else ""
    named = any(len(row[0]) > 20 for row in table.rows)
    kind = ' class="text"' if wordy else ' class="named"' if named else ""
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'{caption}<div class="scroll"><table{kind}>{body}</table></div>'


def _cell(cell: str) -> str:
    verdict = _VERDICTS.get(cell)
    lines = (re.sub(r"([:,_])(?=\S)", r"\1<wbr>", escape(part)) for part in cell.split("; "))  # name:<wbr>key=value
    text = ";<br>".join(lines)
    return f'<td class="verdict {verdict}">{text}</td>' if verdict else f"<td>{text}</td>"


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
