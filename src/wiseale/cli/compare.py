"""Systems side by side: ``wiseale compare DATA --objectives A B C --seeds 3 --out DIR``, and ``wiseale demo``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wiseale.cli.options import (
    DATA,
    ArrayTask,
    VariadicCommand,
    array_script,
    cluster_option,
    directory_option,
    job_option,
    read_settings,
    settings_options,
    spelled_as_options,
)
from wiseale.errors import ConfigError, RunError

if TYPE_CHECKING:
    from rich.console import Console

    from wiseale.experiments.comparison import Comparison
    from wiseale.experiments.jobs import Failure

_LEGEND = (
    "reconstruction: -log p(x|z); AEVB KL: mean over waves, AEVB's prior term; aggregate KL: of the average posterior,"
    " WiSE-ALE's; mutual information: their difference; width: geometric mean of sigma. Nats per wave."
    " One seed: a look, not evidence."
)
_NEXT = (
    "next: open the report in a browser; move through the codes with `wiseale explore {run}`; then train on your own "
    "data: `wiseale train measurements.csv --out runs/first`"
)


@click.command(cls=VariadicCommand)
@click.argument("data", required=False, type=DATA)
@click.option("--objectives", multiple=True, required=True, metavar="SPEC...", help="systems to compare")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True, help="runs of each system")
@click.option("--workers", type=click.IntRange(1), help="runs at the same time [default: a core for each process]")
@cluster_option
@job_option
@click.option("--print-jobs", is_flag=True, help="only print a SLURM script that does each run as a job of an array")
@click.option("--evaluate-rows", type=click.IntRange(2), default=10_000, show_default=True)
@settings_options(leave_out=("data", "objective", "figures"))
@directory_option("directory of the comparison")
def compare(
    data: str | None,
    objectives: tuple[str, ...],
    seeds: int,
    workers: int | None,
    cluster: str | None,
    job: ArrayTask | None,
    print_jobs: bool,
    evaluate_rows: int,
    config_file: Path | None,
    out: Path,
    **options: Any,
) -> int:
    """Train and evaluate several systems on DATA with several seeds, in parallel, then write tables, figures, a report.

    Called again, it does only what is missing, and other --objectives or more --seeds are added to what is there.
    Each run has one thread unless --threads says otherwise.
    """
    base = read_settings(config_file, {"data": data, **options})
    base = base if base.threads else replace(base, threads=1)
    if cluster and (workers or job):
        raise ConfigError(f"--cluster does all runs on its own workers: leave out {'--job' if job else '--workers'}")

    from rich.console import Console

    from wiseale.cli.progress import job_board
    from wiseale.experiments.comparison import default_workers, prepare_comparison
    from wiseale.processes.engines import open_engine

    console = Console()
    with spelled_as_options():
        comparison, dataset = prepare_comparison(base, objectives, seeds, out, evaluate_rows)
    if print_jobs:
        print(array_script(sys.argv[1:], len(comparison.jobs()), base), end="")
        return 0
    part = None if job is None else job.part(comparison.jobs(), "runs")
    with comparison.shared_data(dataset):
        with (
            spelled_as_options(),
            open_engine(cluster, workers or default_workers(base.processes or 1)) as engine,
            job_board(console) as board,
        ):
            failures = comparison.run(engine, board.show, part)
        if part is None:
            return _present(comparison, failures, console)
    print_failures(failures, console)
    console.print(f"{len(part) - len(failures)} of {len(part)} runs done", highlight=False)
    return 1 if failures else 0


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("wiseale-demo"), show_default=True)
@click.option("--waves", type=click.IntRange(200), default=20_000, show_default=True, help="sine waves to train on")
@click.option("--epochs", type=click.IntRange(1), default=20, show_default=True, help="passes over them")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def demo(out: Path, waves: int, epochs: int, seed: int) -> int:
    """Train the paper's systems and the controls on sine waves side by side, then show a table and write a report.

    Runs are parallel processes, one thread each; called again, the demo goes on where it stopped.
    """
    from rich.console import Console

    from wiseale.cli.progress import job_board
    from wiseale.experiments.comparison import default_workers, summarize
    from wiseale.experiments.systems import demo_comparison, reading, variance_of_waves
    from wiseale.processes.engines import local_engine

    console = Console()
    comparison = demo_comparison(out, waves, epochs, seed)
    console.print(f"{waves:,} sine waves, {epochs} epochs, {len(comparison.systems)} systems; runs go to {out}")
    with local_engine(default_workers()) as engine, job_board(console) as board:
        failures = comparison.run(engine, board.show)
    code = _present(comparison, failures, console)
    console.print(_LEGEND, highlight=False, style="dim")
    for sentence in reading(summarize(comparison.results()), variance_of_waves(comparison)):
        console.print(f"- {sentence}", highlight=False)
    console.print(_NEXT.format(run=comparison.jobs()[0].out), highlight=False, soft_wrap=True)
    return code


def _present(comparison: Comparison, failures: Sequence[Failure], console: Console) -> int:
    """Write the report, print as many columns of its table as fit; the exit code is 1 if a run failed."""
    from rich import box
    from rich.table import Table

    from wiseale.experiments.comparison import summarize
    from wiseale.report.comparison import comparison_page
    from wiseale.report.document import write_report
    from wiseale.report.tables import main_table

    results = comparison.results()
    if not results:
        reason = failures[0].reason if failures else "nothing was run"
        raise RunError(f"no run of {comparison.out} finished; the first said: {reason}")
    page = write_report(comparison_page(comparison), comparison.out)
    table, grid, room = main_table(summarize(results)), Table(box=box.SIMPLE_HEAD), console.width
    for number, column in enumerate(table.columns):
        room -= 3 + max(len(column), *(len(row[number]) for row in table.rows))
        if room < 0:
            break
        grid.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in table.rows:
        grid.add_row(*row[: len(grid.columns)])
    console.print(grid)
    print_failures(failures, console)
    console.print(f"report: {page}", highlight=False, soft_wrap=True)
    return 1 if failures else 0


def print_failures(failures: Sequence[Failure], console: Console) -> None:
    """One line for each run that failed."""
    for failure in failures:
        console.print(f"{failure.job.name} failed: {failure.reason}", style="red", markup=False, soft_wrap=True)
