"""The end of a comparison on the terminal: the table, the failures, and where the report is."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from wiseale.errors import RunError
from wiseale.experiments.comparison import Comparison, summarize
from wiseale.experiments.jobs import Failure
from wiseale.report.comparison import comparison_page
from wiseale.report.document import Table as ReportTable
from wiseale.report.document import write_report
from wiseale.report.tables import main_table


def present(comparison: Comparison, failures: Sequence[Failure], console: Console) -> int:
    """Write the report of a comparison and print its table; the exit code is 1 if a run failed, else 0."""
    results = comparison.results()
    if not results:
        reason = failures[0].reason if failures else "nothing was run"
        raise RunError(f"no run of {comparison.out} finished; the first said: {reason}")
    page = write_report(comparison_page(comparison), comparison.out)
    print_table(main_table(summarize(results)), console)
    print_failures(failures, console)
    console.print(f"report: {page}", highlight=False, soft_wrap=True)
    return 1 if failures else 0


def print_table(table: ReportTable, console: Console) -> None:
    """A report's table on the terminal, with as many of its columns as fit; the report has them all."""
    grid = Table(box=box.SIMPLE_HEAD)
    room = console.width
    for number, column in enumerate(table.columns):
        room -= 3 + max(len(column), *(len(row[number]) for row in table.rows))
        if room < 0:
            break
        grid.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in table.rows:
        grid.add_row(*row[: len(grid.columns)])
    console.print(grid)


def print_failures(failures: Sequence[Failure], console: Console) -> None:
    """One line for each run that failed."""
    for failure in failures:
        console.print(f"{failure.job.name} failed: {failure.reason}", style="red", markup=False, soft_wrap=True)
