"""``wiseale compare DATA --objectives A B C --seeds 3 --out DIR``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from wiseale.cli.job_array import ArrayTask, array_script, job_option
from wiseale.cli.options import (
    DATA,
    VariadicCommand,
    cluster_option,
    read_settings,
    settings_options,
    spelled_as_options,
)
from wiseale.config import TrainConfig
from wiseale.errors import ConfigError


@click.command(cls=VariadicCommand)
@click.argument("data", required=False, type=DATA)
@click.option("--objectives", multiple=True, required=True, metavar="SPEC...", help="systems to compare")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True, help="runs of each system")
@click.option("--workers", type=click.IntRange(1), help="runs at the same time [default: a core for each process]")
@cluster_option
@job_option
@click.option("--print-jobs", is_flag=True, help="only print a SLURM script that does each run as a job of an array")
@click.option("--evaluate-rows", type=click.IntRange(2), default=10_000, show_default=True)
@settings_options(TrainConfig, leave_out=("data", "objective", "figures"))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="directory of the comparison")
def command(
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
    base = read_settings(TrainConfig, config_file, {"data": data, **_given(options)})
    base = base if base.threads else replace(base, threads=1)
    if cluster and (workers or job):
        raise ConfigError(f"--cluster does all runs on its own workers: leave out {'--job' if job else '--workers'}")

    from rich.console import Console

    from wiseale.cli.job_board import job_board
    from wiseale.cli.present import present, print_failures
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
            return present(comparison, failures, console)
    print_failures(failures, console)
    console.print(f"{len(part) - len(failures)} of {len(part)} runs done", highlight=False)
    return 1 if failures else 0


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
