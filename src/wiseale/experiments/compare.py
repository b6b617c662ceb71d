"""A comparison from the command line: systems named by their specs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wiseale.config import SettingError, TrainConfig
from wiseale.data import Dataset, load_dataset
from wiseale.experiments.comparison import Comparison, System
from wiseale.objectives import make_objective
from wiseale.training.plan import resolve


def prepare_comparison(
    base: TrainConfig, objectives: Sequence[str], seeds: int, out: Path, evaluate_rows: int
) -> tuple[Comparison, Dataset]:
    """The comparison and its data, after everything that can be checked before the first run has been checked.

    Systems and seeds that the directory already has are part of it.
    """
    if len(set(objectives)) < len(objectives):
        raise SettingError("objectives", "names the same system twice")
    if base.threads == "auto":
        raise SettingError(
            "threads", "cannot be measured while runs go on side by side: give a number, or leave it at 1"
        )
    for objective in objectives:
        make_objective(objective)
    dataset = load_dataset(base.data, Path(base.data_root) if base.data_root else None)
    resolved = resolve(base, dataset)  # raises where a setting is wrong; each run resolves its own settings again
    systems = tuple(System(objective, objective) for objective in objectives)
    length = {"max_epochs": resolved.max_epochs, "patience": resolved.patience}
    kept = TrainConfig(**{**vars(base), "data": resolved.data, **length})
    return Comparison(kept, systems, seeds, out, evaluate_rows).with_kept(), dataset
