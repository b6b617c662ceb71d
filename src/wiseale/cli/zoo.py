"""``wiseale zoo``: the models that are installed with wiseale."""

from __future__ import annotations

import click


@click.command()
def command() -> int:
    """List the trained models that come with wiseale; use them as zoo:NAME wherever a MODEL is asked for."""
    from rich.console import Console
    from rich.table import Table

    from wiseale.evaluation.record import Evaluation
    from wiseale.models.model_file import CONFIG, read_config
    from wiseale.models.zoo import zoo_names, zoo_path
    from wiseale.runs.directory import RunDirectory, read

    table = Table("model", "codes", "ELBO", "MSE", "aggregate KL", "bytes", box=None, pad_edge=False)
    for name in zoo_names():
        path = zoo_path(name)
        measures = read(Evaluation, RunDirectory(path).evaluation).measures
        shown = [measures.get(measure) for measure in ("elbo", "mse", "kl_aggregate_mc")]
        size = sum(file.stat().st_size for file in path.iterdir())
        cells = ["–" if value is None else f"{value:.4g}" for value in shown]
        table.add_row(f"zoo:{name}", str(read_config(path / CONFIG).latent_dim), *cells, f"{size:,}")
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    console.print("nats per observation of test rows; try: wiseale explore zoo:mnist-wise_ale zoo:mnist-aevb")
    return 0
