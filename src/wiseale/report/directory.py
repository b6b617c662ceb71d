"""Build the report of a directory (a reproduction, a comparison, a search or a run) from its files."""

from __future__ import annotations

from pathlib import Path

from wiseale.errors import RunError
from wiseale.experiments.bounds.toy import ToyResult, read_toy
from wiseale.experiments.comparison import COMPARISON, read_comparison, summarize
from wiseale.experiments.gallery import draw_all
from wiseale.experiments.paper.claims import Verdict, judge
from wiseale.experiments.paper.reproduction import REQUEST, read_reproduction
from wiseale.experiments.search.study import REQUEST as SEARCH
from wiseale.report.comparison import comparison_document
from wiseale.report.document import Document
from wiseale.report.reproduction import reproduction_document
from wiseale.report.run import run_document
from wiseale.report.search import search_document
from wiseale.report.toy import toy_section, toy_verdicts


def document_of(path: Path) -> Document:
    """The report of a reproduction, a comparison, a search or a run."""
    if (path / REQUEST).exists():
        return reproduction_page(path)[0]
    if (path / COMPARISON).exists():
        return comparison_page(path)
    if (path / SEARCH).exists():
        return search_document(path)
    if (path / "config.json").exists():
        return run_document(path)
    raise RunError(f"{path} holds no reproduction, comparison, search or run: there is nothing to report")


def reproduction_page(path: Path, toy: ToyResult | None = None) -> tuple[Document, list[Verdict]]:
    """The report of all experiments that `wiseale reproduce` has run in a directory, and the verdicts on the claims.

    ``toy`` is the bound analysis, if it was just computed; otherwise it is read from the directory.
    """
    reproduction = read_reproduction(path)
    if toy is None and (path / "toy" / "tables").is_dir():
        toy = read_toy(path / "toy")
    verdicts = judge(reproduction.evidence(), toy_verdicts(toy) if toy else ())
    extra = (toy_section(toy),) if toy else ()
    return reproduction_document(reproduction, verdicts, extra, path), verdicts


def comparison_page(path: Path) -> Document:
    """The report of `wiseale compare`."""
    comparison = read_comparison(path)
    results = comparison.results()
    saved = draw_all(path / "figures", results) if results else []
    return comparison_document(comparison, results, summarize(results), saved, comparison.unfinished())
