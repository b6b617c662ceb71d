"""Pages: everything a user wrote is escaped, nothing is loaded from elsewhere, tables also lie beside them."""

import csv
import html.parser
import json

import pytest
from matplotlib.figure import Figure

from wiseale.report.document import Commands, Document, Paragraph, Picture, Section, Table
from wiseale.report.html import to_html
from wiseale.report.write import write_report

HOSTILE = '<script>alert("x")</script> & <b>|bold|</b>'


@pytest.fixture
def document(tmp_path):
    picture = tmp_path / "figure.png"
    Figure(figsize=(1, 1)).savefig(picture)
    table = Table("numbers", ("name", HOSTILE), ((HOSTILE, "1.5"), ("second", "held")), caption=HOSTILE)
    blocks = (Paragraph(HOSTILE), Commands((HOSTILE,)), Picture(picture, HOSTILE), table)
    return Document(HOSTILE, HOSTILE, (Section(HOSTILE, blocks),))


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.open, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in ("meta", "img", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_html_escapes_and_closes_everything(document):
    tags = Tags()
    tags.feed(to_html(document))
    assert tags.open == []
    names = {name for name, _ in tags.seen}
    assert "script" not in names
    assert "b" not in names
    assert "".join(tags.text).count('<script>alert("x")</script>') >= 6
    sources = [attributes["src"] for name, attributes in tags.seen if name == "img"]
    assert sources
    assert all(source.startswith("data:image/png;base64,") for source in sources)


def test_tables_lie_beside_the_page(document, tmp_path):
    page = write_report(document, tmp_path / "out")
    assert page.name == "report.html"
    with (tmp_path / "out" / "tables" / "numbers.csv").open(newline="") as file:
        assert list(csv.reader(file))[1] == [HOSTILE, "1.5"]
    assert json.loads((tmp_path / "out" / "tables" / "numbers.json").read_text())[1]["name"] == "second"


def test_markdown_keeps_text_text(document, tmp_path):
    text = write_report(document, tmp_path / "out", markdown=True).read_text()
    assert "\\<script\\>" in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    unescaped = [line.replace("\\|", "") for line in table]
    assert {line.count("|") for line in unescaped} == {3}
    assert "](../figure.png)" in text
