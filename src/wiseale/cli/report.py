"""``wiseale report DIR``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--markdown", is_flag=True, help="write report.md in place of report.html")
def command(directory: Path, markdown: bool) -> int:
    """Write the page of a comparison or reproduction in DIRECTORY again, from what is done so far."""
    from wiseale.experiments.comparison import read_comparison, summarize
    from wiseale.experiments.gallery import draw_all
    from wiseale.report.comparison import comparison_document
    from wiseale.report.write import write_report

    comparison = read_comparison(directory)
    results = comparison.results()
    summary = summarize(results)
    drawn = draw_all(directory / "figures", results) if results else []
    print(write_report(comparison_document(comparison, results, summary, drawn, []), directory, markdown))
    return 0
