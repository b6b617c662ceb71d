"""Run the paper's experiments, most important runs first, and read what a directory holds of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wiseale import registry
from wiseale.errors import RunError
from wiseale.experiments.comparison import COMPARISON, Comparison, Result, Summary, read_comparison, summarize
from wiseale.experiments.jobs import Failure, Show, run_jobs
from wiseale.experiments.request import reading, write_request
from wiseale.paper.evidence import Evidence, evidence_of
from wiseale.paper.experiments import Experiment
from wiseale.paper.plan import ALL_RUNS, Choice, plan_runs
from wiseale.paper.rows import RUNS, RunRow, merge, row_of, write_rows
from wiseale.paper.scales import Scale
from wiseale.platform.json_files import parse_table, read_text, record, to_json
from wiseale.processes.engines import Engine

REQUEST = "reproduction.json"


@dataclass(frozen=True)
class Outcome:
    """What has come of one experiment so far."""

    name: str
    comparisons: tuple[Comparison, ...] = ()  # its own runs, the main comparison first
    note: str | None = None  # what a reader must know of its data
    controls: Mapping[str, Comparison] = field(default_factory=dict)  # differ on purpose, never averaged with its own

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
        rows = [row_of(result, self.name, scale) for result in self.results]
        for control, comparison in self.controls.items():
            rows += [row_of(result, self.name, scale, control) for result in comparison.results()]
        return rows


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


def _read_outcome(out: Path, name: str, note: str | None) -> Outcome:
    """The comparisons in the experiment's folder: its own, and those whose settings differ from them as controls."""
    folders = [out / name, *sorted(path for path in (out / name).glob("*") if path.is_dir())]
    comparisons = {folder: read_comparison(folder) for folder in folders if (folder / COMPARISON).exists()}
    main = comparisons.get(out / name)
    own = [one for one in comparisons.values() if main and one.base == main.base]
    controls = {folder.name: one for folder, one in comparisons.items() if main and one.base != main.base}
    return Outcome(name, tuple(own), note, controls)
