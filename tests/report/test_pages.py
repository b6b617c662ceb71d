"""Pages: everything a user wrote is escaped, nothing is loaded from elsewhere, tables also lie beside them."""

import csv
import html.parser
import json
import math

import pytest
from matplotlib.figure import Figure

from wiseale.experiments.comparison import Estimate
from wiseale.report.document import (
    Commands,
    Definitions,
    Document,
    Paragraph,
    Picture,
    Section,
    Table,
    to_html,
    write_report,
)
from wiseale.report.tables import estimate_cell

HOSTILE = '<script>alert("x")</script> & <b>|bold|</b>'


@pytest.fixture
def document(tmp_path):
    picture = tmp_path / "figure.png"
    Figure(figsize=(1, 1)).savefig(picture)
    table = Table("numbers", ("name", HOSTILE), ((HOSTILE, "1.5"), ("second", "held")), caption=HOSTILE)
    blocks = (
        Paragraph(HOSTILE),
        Commands((HOSTILE,)),
        Picture(picture, HOSTILE),
        table,
        Definitions(HOSTILE, ((HOSTILE, HOSTILE),)),
    )
    return Document(HOSTILE, HOSTILE, (Section(HOSTILE, blocks),))


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.open, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in ("meta", "img", "link", "br", "wbr"):
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
    assert "".join(tags.text).count('<script>alert("x")</script>') >= 9
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
    assert "<script>" not in text.split("```")[0] + text.split("```")[2]
    table = [line for line in text.splitlines() if line.startswith("|")]
    unescaped = [line.replace("\\|", "") for line in table]
    assert {line.count("|") for line in unescaped} == {3}
    assert "](../figure.png)" in text


@pytest.mark.parametrize(
    ("estimate", "cell"),
    [
        (None, "-"),
        (Estimate(315.4321, 2.174, 3), "315.4 ± 2.2"),
        (Estimate(0.04123, 0.4651, 3), "0.04 ± 0.47"),
        (Estimate(4.3, 18.5, 2), "4 ± 18"),
        (Estimate(0.60816, 0.00054, 3), "0.60816 ± 0.00054"),
        (Estimate(64.0, 0.0, 3), "64"),
        (Estimate(10_000.0, None, 1), "10,000"),
        (Estimate(0.19041, None, 1), "0.190"),
        (Estimate(-446.13, None, 1), "-446"),
        (Estimate(11326.641, None, 1), "11327"),
        (Estimate(0.0561, None, 1), "0.0561"),
        (Estimate(0.00042, None, 1), "0.000420"),
        (Estimate(-0.0000123456, None, 1), "-1.23e-05"),
        (Estimate(9.9996, None, 1), "10.0"),
        (Estimate(0.0, None, 1), "0"),
        (Estimate(math.nan, None, 1), "nan"),
    ],
)
def test_numbers_have_the_digits_their_uncertainty_allows(estimate, cell):
    assert estimate_cell(estimate) == cell


def test_figures_are_shown_in_one_scale(document):
    tags = Tags()
    tags.feed(to_html(document))
    (image,) = (attributes for name, attributes in tags.seen if name == "img")
    assert int(image["width"]) == 67  # an inch at 100 dots, of which the file has 100: a figure's has 150


def test_tables_that_are_not_shown_are_written_too(tmp_path):
    hidden = Document("t", "l", (), (Table("hidden", ("a",), (("1",),)),))
    page = write_report(hidden, tmp_path)
    assert "hidden" not in page.read_text()
    assert (tmp_path / "tables" / "hidden.csv").read_text() == "a\n1\n"
