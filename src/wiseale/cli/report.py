"""``wiseale report DIR``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--markdown", is_flag=True, help="write report.md in place of report.html")
def command(directory: Path, markdown: bool) -> int:
    """Write the page of a reproduction, a comparison, a search or an evaluated run in DIRECTORY, as far as it is."""
    from wiseale.report.directory import document_of
    from wiseale.report.write import write_report

    print(write_report(document_of(directory), directory, markdown))
    return 0
