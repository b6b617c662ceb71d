"""``wiseale report DIR``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from wiseale.report.document import Document


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--markdown", is_flag=True, help="write report.md in place of report.html")
def command(directory: Path, markdown: bool) -> int:
    """Write the page of a reproduction, a comparison, a search or an evaluated run in DIRECTORY, as far as it is."""
    from wiseale.report.write import write_report

    print(write_report(document_of(directory), directory, markdown))
    return 0


def document_of(path: Path) -> Document:
    """The report of what a directory holds."""
    from wiseale.errors import RunError

    if (path / "reproduction.json").exists():
        from wiseale.paper.page import reproduction_page

        return reproduction_page(path)[0]
    if (path / "comparison.json").exists():
        from wiseale.experiments.comparison import read_comparison
        from wiseale.report.comparison import comparison_page

        return comparison_page(read_comparison(path))
    if (path / "search.json").exists():
        from wiseale.report.search import search_document

        return search_document(path)
    if (path / "config.json").exists():
        from wiseale.report.run import run_document

        return run_document(path)
    raise RunError(f"{path} holds no reproduction, comparison, search or run: there is nothing to report")
