"""Which runs of the paper's experiments are made, and in which order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from wiseale import config, registry
from wiseale.config import TrainConfig
from wiseale.errors import ConfigError
from wiseale.experiments.comparison import COMPARISON, Comparison, read_comparison
from wiseale.experiments.jobs import Job
from wiseale.paper.experiments import Experiment
from wiseale.paper.rows import RunRow, without_folders
from wiseale.paper.scales import Scale
from wiseale.platform.folders import default_data_root

_OF_THE_SYSTEM = ("objective", "prior_warmup", "seed")  # which have columns of their own


@dataclass(frozen=True)
class Choice:
    """A choice of runs: some of them by name, more seeds, not those whose rows are known already."""

    only: tuple[str, ...] = ()  # parts of names; empty: every run
    seeds: int | None = None  # of each system; None: as many as the scale has
    known: tuple[RunRow, ...] = ()  # of runs made elsewhere, which are not made again

    def includes(self, job: Job, experiment: str, scale: Scale, control: str) -> bool:
        """Whether to make a run."""
        if self.only and not any(part.casefold() in job.name.casefold() for part in self.only):
            return False
        place = (experiment, scale, control)
        rows = [row for row in self.known if (c := row.condition) and (c.experiment, c.scale, c.control) == place]
        return not any(_is_of_system(job, row) and is_row_of(job.config, row) for row in rows)


ALL_RUNS = Choice()


@dataclass(frozen=True)
class Plan:
    """The comparisons of each experiment, what must be said of its data, and the chosen runs, most important first."""

    comparisons: Mapping[str, Sequence[Comparison]]
    notes: Mapping[str, str]
    jobs: Sequence[Job]


def plan_runs(
    names: Sequence[str],
    scale: Scale,
    out: Path,
    data_root: Path | None = None,
    logger: str | None = None,
    choice: Choice = ALL_RUNS,
) -> Plan:
    """The chosen runs of the experiments at a scale, done or not; none of an experiment whose data is missing."""
    common: dict[str, Any] = {"data_root": str(data_root) if data_root else None, "logger": logger}
    comparisons: dict[str, Sequence[Comparison]] = {}
    notes: dict[str, str] = {}
    jobs: list[tuple[int, Job]] = []
    for name in names:
        experiment: Experiment = registry.lookup("experiment", name)
        data = experiment.choose_data(data_root or default_data_root())
        notes |= {} if data.note is None else {name: data.note}
        every = [] if data.skip else experiment.comparisons(scale, out / name, data.spec, **common)
        comparisons[name] = [replace(one, seeds=_seeds(one, choice)) for one in every]
        for priority, job in experiment.jobs(scale, comparisons[name]) if every else []:
            control = _control(job, comparisons[name])
            named = replace(job, name=f"{name}: {control}{', ' if control else ''}{job.name}")
            if choice.includes(named, name, scale, control):
                jobs.append((priority, named))
    return Plan(comparisons, notes, [job for _, job in sorted(jobs, key=lambda job: job[0])])


def is_row_of(settings: TrainConfig, row: RunRow) -> bool:
    """Whether the row is of a run with these settings: every setting that is given has the row's value.

    A setting left at its default has the data's own value, in the run and in the row. Settings of the machine do not
    count.
    """
    if (settings.objective, settings.seed) != (row.objective, row.seed):
        return False
    if settings.prior_warmup not in (None, row.prior_warmup):
        return False
    kept = json.loads(row.config)
    names = [name for name in config.SCIENCE if name not in _OF_THE_SYSTEM]
    return all(_agrees(name, value, kept.get(name)) for name, value in _given(settings).items() if name in names)


def _given(settings: config.Settings) -> dict[str, Any]:
    """The settings that are not left at their defaults."""
    values = {item.name: getattr(settings, item.name) for item in fields(settings)}
    return {item.name: values[item.name] for item in fields(settings) if values[item.name] != item.default}


def _agrees(name: str, given: Any, kept: Any) -> bool:
    if name in ("data", "init_from"):
        return bool(without_folders(given) == kept)
    if name in ("network", "likelihood") and isinstance(kept, str):  # the row also has the settings left at defaults
        try:
            ours, theirs = config.build(name, given), config.build(name, kept)
        except ConfigError:  # the row names something that is not known any more
            return False
        return type(ours) is type(theirs) and all(getattr(theirs, key) == v for key, v in _given(ours).items())
    return bool(given == kept)


def _is_of_system(job: Job, row: RunRow) -> bool:
    """A job's name ends with its system's, followed by the seed where there are several."""
    return f" {job.name}".endswith((f" {row.system}", f" {row.system}, seed {row.seed}"))


def _seeds(comparison: Comparison, choice: Choice) -> int:
    """The seeds asked for, else the experiment's own; never fewer than the directory has already."""
    seeds = choice.seeds or comparison.seeds
    return max(seeds, read_comparison(comparison.out).seeds) if (comparison.out / COMPARISON).exists() else seeds


def _control(job: Job, comparisons: Sequence[Comparison]) -> str:
    """How the run differs on purpose from the experiment's own: the folder of a comparison with other settings."""
    own = comparisons[0].base
    return next((one.out.name for one in comparisons if one.base != own and job.out.is_relative_to(one.out)), "")
