"""``wiseale train DATA --objective NAME --out RUN``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from wiseale.cli.options import read_settings, settings_options, spelled_as_options
from wiseale.config import TrainConfig


@click.command()
@click.argument("data", required=False)
@settings_options(TrainConfig, leave_out=("data",))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Run directory to create.")
def command(data: str | None, out: Path, config_file: Path | None, **options: Any) -> int:
    """Train one auto-encoder; DATA is a dataset (sine, sine:n=20000) or a path to your own file."""
    asked = read_settings(TrainConfig, config_file, {"data": data, **options})

    from wiseale.cli.display import run_display
    from wiseale.cli.outcome import report_outcome
    from wiseale.training.run import start

    with run_display() as display, spelled_as_options():
        outcome = start(asked, out, display)
    return report_outcome(outcome)
