"""Which runs of the paper's experiments are made, in which order, and what a directory holds of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast

from wiseale import config, registry
from wiseale.config import TrainConfig
from wiseale.errors import ConfigError, RunError
from wiseale.experiments.comparison import COMPARISON, Comparison, Result, Summary, read_comparison, summarize
from wiseale.experiments.jobs import Failure, Job, Show, run_jobs
from wiseale.experiments.request import reading, write_request
from wiseale.paper import Scale
from wiseale.paper.experiments import Experiment
from wiseale.paper.rows import RUNS, Evidence, RunRow, evidence_of, merge, row_of, without_folders, write_rows
from wiseale.platform.folders import default_data_root
from wiseale.platform.json_files import parse_table, read_text, record, to_json
from wiseale.processes.engines import Engine

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
        # A job's name ends with its system's, followed by the seed where there are several.
        named = [r for r in rows if f" {job.name}".endswith((f" {r.system}", f" {r.system}, seed {r.seed}"))]
        return not any(is_row_of(job.config, row) for row in named)


ALL_RUNS = Choice()


@dataclass(frozen=True)
class PlannedRuns:
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
) -> PlannedRuns:
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
        comparisons[name] = [_with_seeds(one, choice.seeds) for one in every]
        for priority, job in experiment.jobs(scale, comparisons[name]) if every else []:
            control = _control(job, comparisons[name])
            named = replace(job, name=f"{name}: {control}{', ' if control else ''}{job.name}")
            if choice.includes(named, name, scale, control):
                jobs.append((priority, named))
    return PlannedRuns(comparisons, notes, [job for _, job in sorted(jobs, key=lambda job: job[0])])


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


def _with_seeds(comparison: Comparison, seeds: int | None) -> Comparison:
    """With the seeds asked for, else the experiment's own; never fewer than the directory has already."""
    kept = read_comparison(comparison.out).seeds if (comparison.out / COMPARISON).exists() else 0
    return replace(comparison, seeds=max(seeds or comparison.seeds, kept))


def _control(job: Job, comparisons: Sequence[Comparison]) -> str:
    """How the run differs on purpose from the experiment's own: the folder of a comparison with other settings."""
    own = comparisons[0].base
    return next((one.out.name for one in comparisons if one.base != own and job.out.is_relative_to(one.out)), "")


REQUEST = "reproduction.json"


@dataclass(frozen=True)
class ExperimentResult:
    """What has come of one experiment so far."""

    name: str
    comparisons: tuple[Comparison, ...] = ()  # its own runs, the main comparison first
    note: str | None = None  # what a reader must know of its data
    controls: Mapping[str, Comparison] = field(default_factory=dict)  # differ on purpose, never averaged with its own

    @property
    def experiment(self) -> Experiment:
        """The experiment of this name."""
        return cast(Experiment, registry.lookup("experiment", self.name))

    @property
    def results(self) -> list[Result]:
        """Every evaluated run, the sweep's included, controls excluded."""
        return [result for comparison in self.comparisons for result in comparison.results()]

    @property
    def summary(self) -> Summary:
        """Means and intervals, the sweep's included."""
        return summarize(self.results)

    @property
    def unfinished(self) -> list[Failure]:
        """Runs without an evaluation."""
        every = (*self.comparisons, *self.controls.values())
        return [failure for comparison in every for failure in comparison.unfinished()]

    def rows(self, scale: Scale) -> list[RunRow]:
        """The rows of all its evaluated runs, controls included."""
        rows = [row_of(result, self.name, scale) for result in self.results]
        for control, comparison in self.controls.items():
            rows += [row_of(result, self.name, scale, control) for result in comparison.results()]
        return rows


@dataclass(frozen=True)
class Reproduction:
    """All experiments at one scale."""

    scale: Scale
    outcomes: Mapping[str, ExperimentResult] = field(default_factory=dict)

    def rows(self) -> list[RunRow]:
        """The rows of all evaluated runs."""
        return merge(*(outcome.rows(self.scale) for outcome in self.outcomes.values()))

    def evidence(self) -> Evidence:
        """What the claims are judged by."""
        return evidence_of(self.rows(), self.scale)


def run_experiments(
    names: Sequence[str],
    scale: Scale,
    out: Path,
    data_root: Path | None,
    engine: Engine,
    show: Show,
    logger: str | None = None,
    limit: float = math.inf,
    choice: Choice = ALL_RUNS,
) -> tuple[dict[str, ExperimentResult], list[Failure], int]:
    """Train and evaluate what is missing of the experiments, by priority over all of them, and write ``runs.csv``.

    After ``limit`` seconds, or when interrupted, unfinished runs are left to a later call. Returns what has come of
    each experiment, the runs that failed, and how many of the chosen runs are left to do.
    """
    planned = plan_runs(names, scale, out, data_root, logger, choice)
    for name in names:
        note, comparisons = planned.notes.get(name), planned.comparisons[name]
        keep_request(out, scale, {} if note is None else {name: note})
        for comparison in comparisons:
            comparison.keep_request()
    try:
        failures = run_jobs(planned.jobs, engine, show, limit)
    finally:
        reproduction = read_reproduction(out)
        if rows := reproduction.rows():
            write_rows(out / RUNS, rows)
    left = sum(not job.done for job in planned.jobs) - len(failures)
    return {name: reproduction.outcomes[name] for name in names}, failures, left


def keep_request(out: Path, scale: Scale, notes: Mapping[str, str] | None = None) -> None:
    """Record the scale and the remarks on the data in ``out``; a directory of another scale is refused."""
    before = _read_request(out) if (out / REQUEST).exists() else _Request(scale, {})
    if before.scale != scale:
        raise RunError(f"{out} holds a reproduction at scale {before.scale}: choose another --out")
    write_request(out / REQUEST, to_json({"scale": scale, "notes": before.notes | dict(notes or {})}))


@dataclass(frozen=True)
class _Request:
    """The content of the request's file."""

    scale: Scale
    notes: dict[str, str]


def read_reproduction(out: Path) -> Reproduction:
    """The paper's experiments found in a directory."""
    if not (out / REQUEST).exists():
        raise RunError(f"{out} holds no reproduction: make one with `wiseale reproduce`")
    request = _read_request(out)
    every = (_read_outcome(out, name, request.notes.get(name)) for name in registry.EXPERIMENTS)
    return Reproduction(request.scale, {one.name: one for one in every if one.comparisons or one.note})


def _read_request(out: Path) -> _Request:
    with reading(out / REQUEST, "reproduce"):
        return record(_Request, parse_table(read_text(out / REQUEST)))


def _read_outcome(out: Path, name: str, note: str | None) -> ExperimentResult:
    """The comparisons in the experiment's folder: its own, and those whose settings differ from them as controls."""
    folders = [out / name, *sorted(path for path in (out / name).glob("*") if path.is_dir())]
    comparisons = {folder: read_comparison(folder) for folder in folders if (folder / COMPARISON).exists()}
    main = comparisons.get(out / name)
    own = [one for one in comparisons.values() if main and one.base == main.base]
    controls = {folder.name: one for folder, one in comparisons.items() if main and one.base != main.base}
    return ExperimentResult(name, tuple(own), note, controls)
