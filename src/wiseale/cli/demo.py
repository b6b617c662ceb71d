"""``wiseale demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table

    from wiseale.experiments.demo import DemoResult


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("wiseale-demo"), show_default=True)
@click.option("--waves", type=click.IntRange(200), default=20_000, show_default=True, help="sine waves to train on")
@click.option("--epochs", type=click.IntRange(1), default=12, show_default=True, help="passes over them")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def command(out: Path, waves: int, epochs: int, seed: int) -> int:
    """Train the paper's systems and the controls on sine waves side by side, then show a table and figures.

    Runs are parallel processes, one thread each; called again, the demo goes on where it stopped.
    """
    from rich.console import Console

    from wiseale.cli.job_board import job_board
    from wiseale.experiments.demo import run_demo

    console = Console()
    console.print(f"{waves:,} sine waves, {epochs} epochs; runs go to {out}", highlight=False)
    with job_board(console) as board:
        result = run_demo(out, waves, epochs, seed, board.show, board.said)
    console.print(_table(result))
    console.print(_LEGEND, highlight=False, style="dim")
    for failure in result.failures:
        console.print(f"{failure.job.name} failed: {failure.reason}", style="red", markup=False)
    for figure in result.figures:
        console.print(f"figure: {figure}", highlight=False, soft_wrap=True)
    console.print(f"runs:   {out / 'runs'} (try: wiseale evaluate {out / 'runs' / 'wise_ale'})", soft_wrap=True)
    return 1 if result.failures else 0


def _table(result: DemoResult) -> Table:
    from rich import box
    from rich.table import Table

    n = next(iter(result.evaluations.values())).n_eval
    table = Table(title=f"{n:,} test waves, nats per observation", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("system", no_wrap=True)
    columns = {
        "mse": ("MSE", ".3f"),
        "reconstruction": ("rec.", ".1f"),
        "kl_posterior_prior": ("KL", ".2f"),
        "kl_aggregate_mc": ("agg. KL", ".2f"),
        "elbo": ("ELBO", ".1f"),
        "mutual_information": ("MI", ".2f"),
        "sigma_geometric_mean": ("width", ".3f"),
    }
    for title, _ in columns.values():
        table.add_column(title, justify="right", no_wrap=True)
    for name, evaluation in result.evaluations.items():
        table.add_row(name, *(format(evaluation.measures[key], spec) for key, (_, spec) in columns.items()))
    return table


_LEGEND = (
    "rec.: -log p(x|z); KL: mean over waves, AEVB's prior term; agg. KL: of the average posterior (Monte Carlo), "
    "WiSE-ALE's; MI: I(x; z) = KL - agg. KL; width: geometric mean of sigma"
)
