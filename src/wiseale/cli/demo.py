"""``wiseale demo``."""

from __future__ import annotations

from pathlib import Path

import click

_LEGEND = (
    "reconstruction: -log p(x|z); AEVB KL: mean over waves, AEVB's prior term; aggregate KL: of the average posterior,"
    " WiSE-ALE's; mutual information: their difference; width: geometric mean of sigma. Nats per wave."
    " One seed: a look, not evidence."
)

_NEXT = (
    "next: open the report in a browser; move through the codes with `wiseale explore {run}`; then train on your own \
data: `wiseale train measurements.csv --out runs/first`"
)


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("wiseale-demo"), show_default=True)
@click.option("--waves", type=click.IntRange(200), default=20_000, show_default=True, help="sine waves to train on")
@click.option("--epochs", type=click.IntRange(1), default=20, show_default=True, help="passes over them")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def command(out: Path, waves: int, epochs: int, seed: int) -> int:
    """Train the paper's systems and the controls on sine waves side by side, then show a table and write a report.

    Runs are parallel processes, one thread each; called again, the demo goes on where it stopped.
    """
    from rich.console import Console

    from wiseale.cli.job_board import job_board
    from wiseale.cli.present import present
    from wiseale.experiments.comparison import default_workers, summarize
    from wiseale.experiments.systems import demo_comparison, reading, variance_of_waves
    from wiseale.processes.engines import local_engine

    console = Console()
    comparison = demo_comparison(out, waves, epochs, seed)
    console.print(f"{waves:,} sine waves, {epochs} epochs, {len(comparison.systems)} systems; runs go to {out}")
    with local_engine(default_workers()) as engine, job_board(console) as board:
        failures = comparison.run(engine, board.show)
    code = present(comparison, failures, console)
    console.print(_LEGEND, highlight=False, style="dim")
    for sentence in reading(summarize(comparison.results()), variance_of_waves(comparison)):
        console.print(f"- {sentence}", highlight=False)
    console.print(_NEXT.format(run=comparison.jobs()[0].out), highlight=False, soft_wrap=True)
    return code
