"""Run the paper's experiments, most important runs first, and read what a directory holds of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wiseale import registry
from wiseale.errors import RunError
from wiseale.experiments.comparison import COMPARISON, Comparison, Result, Summary, read_comparison, summarize
from wiseale.experiments.job import Job
from wiseale.experiments.jobs import Failure, Show, run_jobs
from wiseale.experiments.paper.choice import ALL_RUNS, Choice
from wiseale.experiments.paper.evidence import Evidence, evidence_of
from wiseale.experiments.paper.reproduce import Experiment
from wiseale.experiments.paper.run_rows import RUNS, RunRow, merge, row_of, write_rows
from wiseale.experiments.paper.scales import Scale
from wiseale.platform.atomic_files import write_text
from wiseale.platform.folders import default_data_root
from wiseale.platform.json_files import parse_table, read_text, record, to_json
from wiseale.processes.engines import Engine

REQUEST = "reproduction.json"


@dataclass(frozen=True)
class Outcome:
    """What has come of one experiment so far.

    Attributes:
        comparisons: the experiment's own runs, the main comparison first.
        controls: runs that differ from them on purpose, by the name of the difference; never averaged with them.
        note: what a reader must know of its data.
    """

    name: str
    comparisons: tuple[Comparison, ...] = ()
    note: str | None = None
    controls: Mapping[str, Comparison] = field(default_factory=dict)

    @property
    def experiment(self) -> Experiment:
        """The experiment of this name."""
        experiment: Experiment = registry.lookup("experiment", self.name)
        return experiment

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
        found = [row_of(result, self.name, scale) for result in self.results]
        for control, comparison in self.controls.items():
            found += [row_of(result, self.name, scale, control) for result in comparison.results()]
        return found


@dataclass(frozen=True)
class Reproduction:
    """All experiments at one scale."""

    scale: Scale
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)

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
) -> tuple[dict[str, Outcome], list[Failure], int]:
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
        found = read_reproduction(out)
        if rows := found.rows():
            write_rows(out / RUNS, rows)
    left = sum(not job.done for job in planned.jobs) - len(failures)
    return {name: found.outcomes[name] for name in names}, failures, left


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
        made = experiment.comparisons(scale, out / name, data.spec, **common) if not data.skip else []
        made = [replace(comparison, seeds=_seeds(comparison, choice)) for comparison in made]
        comparisons[name] = made
        for priority, job in experiment.jobs(scale, made) if made else []:
            control = _control(job, made)
            named = replace(job, name=f"{name}: {control}{', ' if control else ''}{job.name}")
            if choice.includes(named, (name, scale, control)):
                jobs.append((priority, named))
    return Plan(comparisons, notes, [job for _, job in sorted(jobs, key=lambda job: job[0])])


def _seeds(comparison: Comparison, choice: Choice) -> int:
    """The seeds asked for, else the experiment's own; never fewer than the directory has already."""
    asked = choice.seeds or comparison.seeds
    return max(asked, read_comparison(comparison.out).seeds) if (comparison.out / COMPARISON).exists() else asked


def _control(job: Job, comparisons: Sequence[Comparison]) -> str:
    """How the run differs on purpose from the experiment's own: the folder of a comparison with other settings."""
    own = comparisons[0].base
    return next((one.out.name for one in comparisons if one.base != own and job.out.is_relative_to(one.out)), "")


def keep_request(out: Path, scale: Scale, notes: Mapping[str, str] | None = None) -> None:
    """Record the scale and the remarks on the data in ``out``; a directory of another scale is refused."""
    before = read_reproduction(out) if (out / REQUEST).exists() else Reproduction(scale)
    if before.scale != scale:
        raise RunError(f"{out} holds a reproduction at scale {before.scale}: choose another --out")
    kept = {name: outcome.note for name, outcome in before.outcomes.items() if outcome.note} | dict(notes or {})
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_text(out / REQUEST, to_json({"scale": scale, "notes": kept}))
    except OSError as error:
        raise RunError(f"cannot write {out / REQUEST}: {error.strerror}") from None


@dataclass(frozen=True)
class _Request:
    """The content of the request's file."""

    scale: Scale
    notes: dict[str, str]


def read_reproduction(out: Path) -> Reproduction:
    """The paper's experiments found in a directory."""
    path = out / REQUEST
    if not path.exists():
        raise RunError(f"{out} holds no reproduction: make one with `wiseale reproduce`")
    try:
        request = record(_Request, parse_table(read_text(path)))
        scale, notes = request.scale, request.notes
    except (OSError, ValueError) as error:
        raise RunError(f"cannot read {path}: {error}; restore it, or reproduce into another --out") from None
    outcomes = {}
    for name in registry.EXPERIMENTS:
        outcome = replace(_read_outcome(out, name), note=notes.get(name))
        if outcome.comparisons or outcome.note:
            outcomes[name] = outcome
    return Reproduction(scale, outcomes)


def _read_outcome(out: Path, name: str) -> Outcome:
    """The comparisons in the experiment's folder: its own, and those whose settings differ from them as controls."""
    folders = [out / name, *sorted(path for path in (out / name).glob("*") if path.is_dir())]
    found = {folder: read_comparison(folder) for folder in folders if (folder / COMPARISON).exists()}
    main = found.get(out / name)
    if main is None:
        return Outcome(name)
    own = {folder: one for folder, one in found.items() if one.base == main.base}
    controls = {folder.name: one for folder, one in found.items() if folder not in own}
    return Outcome(name, tuple(own.values()), controls=controls)
