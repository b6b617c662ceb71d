"""``wiseale search DATA --trials 50 --out DIR``."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wiseale.cli.options import (
    DATA,
    VariadicCommand,
    directory_option,
    read_settings,
    settings_options,
    spelled_as_options,
)
from wiseale.errors import ConfigError

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from wiseale.experiments.search import Measure

MEASURES = ("elbo", "reconstruction", "loss")


@click.command(cls=VariadicCommand)
@click.argument("data", required=False, type=DATA)
@click.option("--trials", type=click.IntRange(1), default=50, show_default=True, help="runs in all")
@click.option(
    "--space",
    multiple=True,
    metavar="NAME=LOW..HIGH|NAME=A|B...",
    help="settings to search: lr=1e-4..1e-2 batch_size=32|64 objective.prior_weight=0.1..4",
)
@click.option("--measure", type=click.Choice(MEASURES), help="of the held-out rows [default: elbo where there is one]")
@settings_options(leave_out=("data", "figures", "processes"))
@directory_option("directory of the search")
def command(
    data: str | None,
    trials: int,
    space: tuple[str, ...],
    measure: Measure | None,
    config_file: Path | None,
    out: Path,
    **options: Any,
) -> int:
    """Search for the settings with the best held-out measure; unpromising trials are stopped early.

    Options that are given are kept; without --space, lr, batch size and latent dimension are searched unless given.
    Called again, it continues. The same command in a second terminal shares the work.
    """
    if importlib.util.find_spec("optuna") is None:
        raise ConfigError("wiseale search needs a package that is missing: pip install 'wiseale[search]'")
    fixed = tuple(name for name, value in options.items() if value is not None)
    base = read_settings(config_file, {"data": data, **options, "figures": False})

    from rich.console import Console

    from wiseale.experiments.search import prepare_search, run_search
    from wiseale.report.document import write_report
    from wiseale.report.search import best_trial, search_document

    console = Console(highlight=False, soft_wrap=True)

    def print_trial(trial: FrozenTrial) -> None:
        outcomes = {"COMPLETE": f"{search.measure} {trial.value or 0:.4f}", "PRUNED": "stopped early"}
        reason = trial.user_attrs.get("reason", "failed")
        values = trial.params.items()
        settings = " ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in values)
        console.print(f"trial {trial.number}: {outcomes.get(trial.state.name, reason)}  ({settings})", markup=False)

    with spelled_as_options():
        search, dataset = prepare_search(base, fixed, space, measure, out)
    with search.shared_data(dataset):
        signal = run_search(search, trials, print_trial)
    finished = [trial for trial in search.trials() if trial.state.name == "COMPLETE"]
    if finished:
        page = write_report(search_document(out), out)
        best = best_trial(search, finished)
        console.print(f"best: trial {best.number}, held-out {search.measure} {best.value:.4f} ({out / 'best.json'})")
        console.print(f"report: {page}")
    if signal is not None:
        console.print("interrupted; the same command continues")
        return 128 + signal
    return 0
