"""``wiseale resume RUN``."""

from __future__ import annotations

from pathlib import Path

import click

from wiseale.processes.world import from_environment


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--processes", type=click.IntRange(1), metavar="N", help="processes that share each batch [default: as before]"
)
def command(run: Path, processes: int | None) -> int:
    """Continue an interrupted RUN; the final weights are those of a run that was never interrupted."""
    from wiseale.runs.directory import RunDirectory

    world = from_environment()
    directory = RunDirectory.open(run)
    if directory.finished:
        if world.is_rank_0:
            print(f"{run} is finished: nothing to resume")
        return 0
    if world.size == 1:
        processes = processes or directory.read_record().settings.processes or 1
        if processes > 1:
            from wiseale.processes.launch import launch

            return launch(["resume", str(run)], processes)

    from wiseale.cli.display import run_display
    from wiseale.cli.outcome import report_outcome
    from wiseale.runs.run import resume

    with run_display(world.is_rank_0) as display:
        outcome = resume(run, display)
    return report_outcome(outcome, world.is_rank_0)
