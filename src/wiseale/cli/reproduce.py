"""``wiseale reproduce NAME --scale SCALE --out DIR``: the paper's experiments."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from wiseale import registry
from wiseale.cli.options import cluster_option, data_root_option, directory_option, spelled_as_options
from wiseale.errors import ConfigError, counted
from wiseale.paper import SCALES, Scale

TRAINED = tuple(registry.EXPERIMENTS)


@click.command()
@click.argument("name", type=click.Choice((*TRAINED, "toy", "all")))
@click.option("--scale", type=click.Choice(SCALES), default="small", show_default=True)
@directory_option("directory of the reproduction")
@data_root_option
@click.option("--workers", type=click.IntRange(1), help="runs at the same time [default: one per core]")
@cluster_option
@click.option("--limit-minutes", type=click.FloatRange(0, min_open=True), help="stop then; a later call continues")
@click.option("--only", multiple=True, metavar="TEXT", help="only runs whose name contains this; may be repeated")
@click.option("--seeds", type=click.IntRange(1), help="seeds of each system [default: the scale's]")
@click.option("--known", type=click.Path(path_type=Path), help="a runs.csv: runs that have a row in it are left out")
@click.option("--list", "listed", is_flag=True, help="only print the runs in their order, and the next step of each")
@click.option("--logger", help=f"also write every run's metrics for {', '.join(registry.names('logger'))}")
def command(
    name: str,
    scale: Scale,
    out: Path,
    data_root: Path | None,
    workers: int | None,
    cluster: str | None,
    limit_minutes: float | None,
    only: tuple[str, ...],
    seeds: int | None,
    known: Path | None,
    listed: bool,
    logger: str | None,
) -> int:
    """Run the paper's experiments with their controls, judge its claims, and write a report.

    Called again, it does only what is missing. One process at a time works in DIR. The runs that decide most come
    first; --only, --seeds and --known choose others, and --list shows which. After the
    runs of `all` comes the analysis of the bounds, which is `toy` alone, unless DIR has it or --only chooses runs.

    smoke: minutes for all, a rehearsal; small: about a quarter of an hour each on two cores; paper: the published
    sizes, with more controls.
    """
    from rich.console import Console

    from wiseale.cli.compare import print_failures
    from wiseale.cli.progress import job_board
    from wiseale.experiments.comparison import default_workers
    from wiseale.paper.page import reproduction_page
    from wiseale.paper.reproduction import Choice, keep_request, plan_runs, run_experiments
    from wiseale.paper.rows import read_rows
    from wiseale.paper.toy import has_all_tables, run_toy
    from wiseale.platform.locks import reserved
    from wiseale.processes.engines import open_engine
    from wiseale.report.document import write_report
    from wiseale.training.plan import make_logger

    with spelled_as_options():
        make_logger(logger)
    names = TRAINED if name == "all" else (name,) if name in TRAINED else ()
    console = Console(highlight=False, soft_wrap=True)
    choice = Choice(only, seeds, tuple(read_rows(known)) if known else ())
    every = plan_runs(names, scale, out, data_root).jobs
    if only and every and not plan_runs(names, scale, out, data_root, choice=Choice(only, seeds)).jobs:
        parts = " ".join(f"--only {part!r}" for part in only)
        raise ConfigError(f"{parts} leaves no run: give a part of a name, such as {every[0].name!r}")
    if listed:
        for number, job in enumerate(plan_runs(names, scale, out, data_root, choice=choice).jobs, 1):
            console.print(f"{number} {job.name}: {job.next_step}", markup=False)
        return 0
    keep_request(out, scale)
    limit = math.inf if limit_minutes is None else 60 * limit_minutes
    if names:
        console.print(f"{', '.join(names)}: scale {scale}", style="bold")
    with (
        reserved(out),
        spelled_as_options(),
        open_engine(cluster, workers or default_workers()) as engine,
        job_board(console) as board,
    ):
        outcomes, failures, left = run_experiments(
            names, scale, out, data_root, engine, board.show, logger, limit, choice
        )
    print_failures(failures, console)
    if left and limit_minutes:
        console.print(f"stopped after {limit_minutes:g} minutes, {left} runs to go: call again to continue")
    for outcome in outcomes.values():
        if outcome.note:
            console.print(outcome.note, style="yellow", markup=False)
    toy = None
    if name == "toy" or (name == "all" and not only and not has_all_tables(out / "toy")):
        toy = run_toy(out / "toy", scale, lambda step: console.print(f"bound analysis: {step}", markup=False))
    document, verdicts = reproduction_page(out, toy)
    page = write_report(document, out)
    # A line for each verdict, on a terminal cut at its width; the report has all of it.
    style: dict[str, Any] = {"no_wrap": True, "overflow": "ellipsis", "soft_wrap": False} if console.is_terminal else {}
    for verdict in verdicts:
        lacking = f" (runs of {counted(len(verdict.missing), 'system')} missing)" if verdict.missing else ""
        console.print(f"{verdict.claim} {verdict.outcome}{lacking}: {verdict.statement}", markup=False, **style)
    console.print(f"report: {page}")
    return 1 if failures else 0
