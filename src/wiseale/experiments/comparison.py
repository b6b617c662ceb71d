"""A comparison of systems over several seeds on one dataset: its runs, its results, and means with intervals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from wiseale.config import SCIENCE, SettingError, TrainConfig, from_values
from wiseale.data import Dataset, load_dataset
from wiseale.errors import RunError
from wiseale.evaluation.record import Evaluation
from wiseale.experiments import request
from wiseale.experiments.intervals import Estimate, estimate
from wiseale.experiments.jobs import Failure, Job, Show, run_jobs
from wiseale.objectives import make_objective
from wiseale.platform.json_files import parse_table, read_text, record, sealed, unseal
from wiseale.platform.locks import reserved
from wiseale.platform.machine import cores
from wiseale.processes.engines import Engine
from wiseale.runs.directory import RunDirectory, read
from wiseale.training.loop import EpochRecord
from wiseale.training.plan import resolve

COMPARISON = "comparison.json"
_MOST_SEEDS = 10_000


@dataclass(frozen=True)
class System:
    """One system to compare: its name in tables, its objective, and training settings of its own."""

    name: str
    objective: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """A name for its directory."""
        own = "".join(f"-{key}-{value}" for key, value in self.settings.items())
        return re.sub(r"[^A-Za-z0-9_.]+", "-", self.objective.replace("/", "-over-") + own).strip("-")


@dataclass(frozen=True)
class Comparison:
    """Systems, seeds and common settings; everything lives under ``out`` and is done at most once."""

    base: TrainConfig
    systems: tuple[System, ...]
    seeds: int
    out: Path
    evaluate_rows: int = 10_000

    def jobs(self, systems: Sequence[System] | None = None) -> list[Job]:
        """The runs of all or some systems, seed by seed, so that an early look shows all systems."""
        return [
            Job(
                f"{system.name}, seed {seed}" if self.seeds > 1 else system.name,
                replace(self.base, objective=system.objective, seed=seed, **system.settings),
                self.run_path(system, seed),
                self.evaluate_rows,
            )
            for seed in range(self.base.seed, self.base.seed + self.seeds)
            for system in (self.systems if systems is None else systems)
        ]

    def run_path(self, system: System, seed: int) -> Path:
        """Where a run lives."""
        return self.out / "runs" / system.folder / f"seed-{seed}"

    def run(self, engine: Engine, show: Show, part: Sequence[Job] | None = None) -> list[Failure]:
        """Train and evaluate what is missing; a directory of runs with other settings is refused.

        One process at a time does all runs. ``part`` are those of a task of a job array, beside other tasks.
        """
        self.keep_request()
        with reserved(self.out) if part is None else nullcontext():
            return run_jobs(self.jobs() if part is None else part, engine, show)

    def shared_data(self, dataset: Dataset) -> AbstractContextManager[None]:
        """Inside, the runs and the figures read this dataset instead of parsing the user's file again."""
        self.keep_request()
        return request.shared_data(self.base, dataset, self.out)

    def results(self) -> list[Result]:
        """What is done so far."""
        seeds = range(self.base.seed, self.base.seed + self.seeds)
        every = [Result(system, seed, self.run_path(system, seed)) for seed in seeds for system in self.systems]
        return [result for result in every if result.directory.evaluation.exists()]

    def unfinished(self) -> list[Failure]:
        """Runs without an evaluation: they failed, were stopped, or have not begun."""
        return [Failure(job, job.last_log_line) for job in self.jobs() if not RunDirectory(job.out).evaluation.exists()]

    def with_kept(self) -> Comparison:
        """With the systems and seeds that its directory already has: another call adds some and takes none away."""
        if not (self.out / COMPARISON).exists():
            return self
        before = read_comparison(self.out)
        added = tuple(system for system in self.systems if system not in before.systems)
        return replace(self, systems=(*before.systems, *added), seeds=max(before.seeds, self.seeds))

    def keep_request(self) -> None:
        """Write what the directory is for; one of runs with other settings, or of something else, is refused."""
        path = self.out / COMPARISON
        if not path.exists():
            request.refuse_other_files(self.out, "comparison")
        else:
            before, ours = read_comparison(self.out), asdict(self.base) | {"evaluate_rows": self.evaluate_rows}
            theirs = asdict(before.base) | {"evaluate_rows": before.evaluate_rows}
            names = [name for name in ours if name in (*SCIENCE, "evaluate_rows") and ours[name] != theirs[name]]
            if names:
                differences = ", ".join(f"{name} is {theirs[name]}, not {ours[name]}" for name in names)
                raise RunError(
                    f"{self.out} holds a comparison with other settings ({differences}): repeat them, or choose "
                    "another --out"
                )
        values = asdict(self)
        del values["out"]
        request.write_request(path, sealed(values))


def default_workers(processes: int = 1) -> int:
    """Runs trained at the same time: as many as the cores suffice for."""
    return max(1, cores() // processes)


def read_comparison(out: Path) -> Comparison:
    """The comparison kept in a directory."""
    path = out / COMPARISON
    if not path.exists():
        raise RunError(f"{out} holds no comparison: make one with `wiseale compare`")
    with request.reading(path, "compare again"):
        kept = record(_Request, unseal(parse_table(read_text(path))))
        base = from_values(TrainConfig, kept.base)
        if not 1 <= kept.seeds <= _MOST_SEEDS:
            raise ValueError(f"seeds is {kept.seeds}")
    return Comparison(base, kept.systems, kept.seeds, out, kept.evaluate_rows)


@dataclass(frozen=True)
class _Request:
    """The content of the comparison's file."""

    base: dict[str, Any]
    systems: tuple[System, ...]
    seeds: int
    evaluate_rows: int


@dataclass(frozen=True)
class Result:
    """One evaluated run."""

    system: System
    seed: int
    path: Path

    @property
    def directory(self) -> RunDirectory:
        """The run's files."""
        return RunDirectory(self.path)

    @property
    def evaluation(self) -> Evaluation:
        """What `wiseale evaluate` wrote."""
        return read(Evaluation.from_json, self.directory.evaluation)

    @property
    def training_measures(self) -> dict[str, float]:
        """Measures of the training itself: the last epoch's ELBO, and seconds per thousand rows (median epoch)."""
        last = self.metrics[-1].train
        timings = self.directory.read_timing()
        costs: dict[str, float] = {}
        if timings:
            costs["seconds_per_thousand_rows"] = 1000 / median(t.samples_per_second for t in timings)
            costs["cpu_seconds_per_thousand_rows"] = median(t.cpu_seconds_per_thousand_rows for t in timings)
        return costs | ({"training_elbo": last["elbo"]} if "elbo" in last else {})

    @property
    def metrics(self) -> list[EpochRecord]:
        """One record per epoch."""
        return self.directory.read_metrics()


Summary = dict[str, dict[str, Estimate]]
"""System name → measure → estimate; measures that are null for a system are absent."""


def summarize(results: Sequence[Result]) -> Summary:
    """Mean and interval over seeds of every measure of every system."""
    collected: dict[str, dict[str, list[float]]] = {}
    for result in results:
        of_system = collected.setdefault(result.system.name, {})
        for name, value in (result.evaluation.measures | result.training_measures).items():
            if value is not None:
                of_system.setdefault(name, []).append(float(value))
    return {system: {name: estimate(v) for name, v in measures.items()} for system, measures in collected.items()}


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
