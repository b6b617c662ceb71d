"""A search from the command line: everything that can be checked before the first trial is checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from wiseale.config import SettingError, TrainConfig
from wiseale.data import Dataset, load_dataset
from wiseale.experiments.search.space import default_space, parse_space, settings_of_trial
from wiseale.experiments.search.study import Measure, Search
from wiseale.objectives import make_objective
from wiseale.training.plan import resolve


def prepare_search(
    base: TrainConfig, given: Sequence[str], space: Sequence[str], measure: Measure | None, out: Path
) -> tuple[Search, Dataset]:
    """The search and its data."""
    varied = parse_space(space) if space else default_space(base, given)
    if not varied:
        raise SettingError("space", "is empty: every setting that is searched by default was given")
    for one in varied:
        if one.name in given:
            raise SettingError("space", f"searches {one.name}, which is also given: leave one of them out")
    stochastic = make_objective(base.objective).stochastic
    if measure == "elbo" and not stochastic:
        raise SettingError("measure", f"elbo: {base.objective} has a deterministic encoder and no ELBO")
    chosen: Measure = measure or ("elbo" if stochastic else "reconstruction")
    dataset = load_dataset(base.data, Path(base.data_root) if base.data_root else None)
    first = {one.name: one.choices[0] if one.choices else one.low for one in varied}
    resolved = resolve(settings_of_trial(base, first), dataset)  # raises where a setting is wrong
    if resolved.held_out == 0:
        raise SettingError("held_out", "must be above 0: trials are judged on held-out rows")
    return Search(replace(base, data=resolved.data), varied, chosen, out), dataset
