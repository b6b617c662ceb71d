"""``wiseale resume RUN``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
def command(run: Path) -> int:
    """Continue an interrupted RUN; the final weights are those of a run that was never interrupted."""
    from wiseale.cli.display import run_display
    from wiseale.cli.outcome import report_outcome
    from wiseale.training.run import resume
    from wiseale.training.run_directory import RunDirectory

    if RunDirectory.open(run).finished:
        print(f"{run} is finished: nothing to resume")
        return 0
    with run_display() as display:
        outcome = resume(run, display)
    return report_outcome(outcome)
