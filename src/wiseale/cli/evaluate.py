"""``wiseale evaluate RUN``."""

from __future__ import annotations

from pathlib import Path

import click

from wiseale.errors import ConfigError


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--data", help="other data to measure on (default: the run's own test or held-out rows)")
@click.option("--seed", type=int, default=0, show_default=True, help="seed of the Monte Carlo draws")
@click.option("--most", type=int, default=10_000, show_default=True, help="rows to use at the most")
@click.option("--json", "as_json", is_flag=True, help="print JSON in place of a table")
def command(run: Path, data: str | None, seed: int, most: int, as_json: bool) -> int:
    """Measure a finished RUN on data it has not seen, in nats per observation, and write RUN/evaluation.json."""
    if most < 2:
        raise ConfigError(f"--most must be at least 2, got {most}")

    from dataclasses import asdict

    from rich.console import Console
    from rich.table import Table

    from wiseale.durable import to_json
    from wiseale.evaluation.evaluate import evaluate

    result = evaluate(run, data, seed, most)
    if as_json:
        print(to_json(asdict(result)), end="")
        return 0
    table = Table("measure", "value", title=f"{run}: {result.n_eval:,} rows ({result.split}) of {result.data}")
    table.columns[1].justify = "right"
    for name, value in result.measures.items():
        table.add_row(name, f"{value:,}" if isinstance(value, int) else "-" if value is None else f"{value:.4f}")
    Console().print(table)
    return 0
