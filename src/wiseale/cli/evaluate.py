"""``wiseale evaluate RUN`` and ``wiseale report DIR``."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wiseale.cli.options import DATA
from wiseale.errors import ConfigError, RunError, counted

if TYPE_CHECKING:
    from rich.table import Table

    from wiseale.evaluation.record import Evaluation
    from wiseale.report.document import Document


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--data", type=DATA, help="other data to measure on (default: the run's own test or held-out rows)")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="seed of the Monte Carlo draws")
@click.option("--most", type=int, default=10_000, show_default=True, help="rows to use at the most")
@click.option(
    "--nll-samples", type=int, default=64, show_default=True, help="importance samples per row of the NLL; 0: no NLL"
)
@click.option(
    "--figures/--no-figures", default=True, show_default=True, help="draw the run's pictures if they are missing"
)
@click.option("--json", "as_json", is_flag=True, help="print JSON in place of a table")
def evaluate(run: Path, data: str | None, seed: int, most: int, nll_samples: int, figures: bool, as_json: bool) -> None:
    """Measure a finished RUN on data it has not seen, in nats per observation, and write RUN/evaluation.json."""
    if most < 2:
        raise ConfigError(f"--most must be at least 2, got {most}")
    if nll_samples < 0:
        raise ConfigError(f"--nll-samples must be at least 0, got {nll_samples}")

    from rich.console import Console

    from wiseale.cli.display import collapse_line, named_pictures
    from wiseale.cli.progress import measuring_bar
    from wiseale.evaluation.evaluate import evaluate
    from wiseale.runs.run import Run

    with nullcontext() if as_json else measuring_bar() as progress:
        result = evaluate(run, data, seed, most, nll_samples, progress)
    pictures = named_pictures(run) if figures and data is None else None
    if as_json:
        print(result.to_json(), end="")
        return
    console = Console()
    console.print(_table(run, result))
    measures_of: dict[str, list[str]] = {}
    for name, reason in result.reasons.items():
        measures_of.setdefault(reason, []).append(name)
    lines = [f"not measured: {', '.join(names)} ({reason})" for reason, names in measures_of.items()]
    for line in (*lines, pictures, collapse_line(Run.open(run).settings, result.code_use)):
        if line:
            console.print(line, highlight=False, markup=False, soft_wrap=True)


def _table(run: Path, result: Evaluation) -> Table:
    """What was measured, one section for each question."""
    from rich.markup import escape
    from rich.table import Table

    title = f"{run}: {counted(result.n_eval, 'row')} ({result.split}) of {result.data}"
    table = Table("question", "measure", "value", title=escape(title))
    table.columns[2].justify = "right"
    for question, names in result.groups.items():
        values = [(name, value) for name in names if (value := result.measures[name]) is not None]
        for number, (name, value) in enumerate(values):
            text = f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
            table.add_row("" if number else question, escape(name), text)
        if values:
            table.add_section()
    return table


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--markdown", is_flag=True, help="write report.md in place of report.html")
def report(directory: Path, markdown: bool) -> None:
    """Write the page of a reproduction, a comparison, a search or an evaluated run in DIRECTORY, as far as it is."""
    from wiseale.report.document import write_report

    print(write_report(_document_of(directory), directory, markdown))


def _document_of(path: Path) -> Document:
    """The report of what a directory holds."""
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
