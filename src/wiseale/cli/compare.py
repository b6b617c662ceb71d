"""``wiseale compare DATA --objectives A B C --seeds 3 --out DIR``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from wiseale.cli.data_argument import DATA
from wiseale.cli.options import read_settings, settings_options, spelled_as_options
from wiseale.cli.variadic import VariadicCommand
from wiseale.config import TrainConfig


@click.command(cls=VariadicCommand)
@click.argument("data", required=False, type=DATA)
@click.option("--objectives", multiple=True, required=True, metavar="SPEC...", help="systems to compare")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True, help="runs of each system")
@click.option("--workers", type=click.IntRange(1), help="runs at the same time [default: a core for each process]")
@click.option("--evaluate-rows", type=click.IntRange(2), default=10_000, show_default=True)
@settings_options(TrainConfig, leave_out=("data", "objective", "figures"))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="directory of the comparison")
def command(
    data: str | None,
    objectives: tuple[str, ...],
    seeds: int,
    workers: int | None,
    evaluate_rows: int,
    config_file: Path | None,
    out: Path,
    **options: Any,
) -> int:
    """Train and evaluate several systems on DATA with several seeds, in parallel, then write tables, figures, a report.

    Called again, it does only what is missing. Each run has one thread unless --threads says otherwise.
    """
    base = read_settings(TrainConfig, config_file, {"data": data, "threads": "1", **_given(options)})

    from rich.console import Console

    from wiseale.cli.job_board import job_board
    from wiseale.cli.present import present
    from wiseale.experiments.compare import prepare_comparison
    from wiseale.experiments.comparison import default_workers

    console = Console()
    with spelled_as_options():
        comparison, dataset = prepare_comparison(base, objectives, seeds, out, evaluate_rows)
    with comparison.shared_data(dataset):
        with job_board(console) as board:
            failures = comparison.run(workers or default_workers(base.processes or 1), board.show)
        return present(comparison, failures, console)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
