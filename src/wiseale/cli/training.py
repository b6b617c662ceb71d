"""``wiseale train DATA --objective NAME --out RUN``, and ``wiseale resume RUN``."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import click

from wiseale.cli.options import DATA, directory_option, read_settings, settings_options, spelled_as_options
from wiseale.config import TrainConfig
from wiseale.platform.json_files import to_json
from wiseale.processes.world import from_environment, launch, report_once


@click.command()
@click.argument("data", required=False, type=DATA)
@settings_options(leave_out=("data",))
@directory_option("Run directory to create.")
def train(data: str | None, out: Path, config_file: Path | None, **options: Any) -> int:
    """Train one auto-encoder; DATA is a dataset (sine, sine:n=20000) or a path to your own file.

    How a file is read follows a colon: sales.csv:decimal=comma,header=true,drop=id or x.npy:channels=last
    (docs/running.md lists all such settings).
    """
    world = from_environment()
    with report_once(world):
        config = read_settings(config_file, {"data": data, **options})
    if world.size == 1 and config.processes is not None and config.processes > 1:
        return _as_ranks(config, out, config.processes)

    from wiseale.cli.display import report_outcome, run_display
    from wiseale.runs.train import start

    with run_display(world.is_rank_0) as display, spelled_as_options():
        outcome = start(config, out, display)
    return report_outcome(outcome, world.is_rank_0)


def _as_ranks(config: TrainConfig, out: Path, processes: int) -> int:
    from wiseale.runs.directory import refuse_existing

    refuse_existing(out)
    settings = {name: value for name, value in dataclasses.asdict(config).items() if value is not None}
    with tempfile.TemporaryDirectory(prefix="wiseale-") as folder:
        file = Path(folder) / "settings.json"
        file.write_text(to_json(settings), encoding="utf-8")
        return launch(["train", "--config", str(file), "--out", str(out)], processes)


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--processes", type=click.IntRange(1), metavar="N", help="processes that share each batch [default: as before]"
)
def resume(run: Path, processes: int | None) -> int:
    """Continue an interrupted RUN; the final weights are those of a run that was never interrupted."""
    from wiseale.runs.run import Run

    world = from_environment()
    before = Run.open(run)
    if before.finished:
        if world.is_rank_0:
            print(f"{run} is finished: nothing to resume")
        return 0
    processes = processes or before.settings.processes
    if world.size == 1 and processes > 1:
        return launch(["resume", str(run)], processes)

    from wiseale.cli.display import report_outcome, run_display
    from wiseale.runs.train import resume

    with run_display(world.is_rank_0) as display:
        outcome = resume(run, display)
    return report_outcome(outcome, world.is_rank_0)
