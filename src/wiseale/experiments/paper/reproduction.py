"""Carry out the paper's experiments one after the other, each as far as it can be, and read them back from disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wiseale import registry
from wiseale.errors import RunError
from wiseale.experiments.comparison import Comparison, Result, Summary, read_comparison, summarize
from wiseale.experiments.jobs import Failure, Show
from wiseale.experiments.paper.claims import Evidence
from wiseale.experiments.paper.reproduce import Experiment, faces
from wiseale.experiments.paper.scales import Scale
from wiseale.platform.atomic_files import to_json, write_text
from wiseale.platform.folders import default_data_root
from wiseale.platform.json_files import parse_table, read_text, record

REQUEST = "reproduction.json"


@dataclass(frozen=True)
class Outcome:
    """What has come of one experiment so far; ``note`` says what a reader must know of its data."""

    name: str
    comparisons: tuple[Comparison, ...] = ()
    note: str | None = None

    @property
    def results(self) -> list[Result]:
        """Every evaluated run, the sweep's included."""
        return [result for comparison in self.comparisons for result in comparison.results()]

    @property
    def summary(self) -> Summary:
        """Means and intervals, the sweep's included."""
        return summarize(self.results)

    @property
    def unfinished(self) -> list[Failure]:
        """Runs without an evaluation."""
        return [failure for comparison in self.comparisons for failure in comparison.unfinished()]


@dataclass(frozen=True)
class Reproduction:
    """All experiments at one scale."""

    scale: Scale
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)

    def evidence(self) -> Evidence:
        """What the claims are judged by."""
        return Evidence({name: one.summary for name, one in self.outcomes.items()}, smoke=self.scale == "smoke")


def run_experiment(
    name: str, scale: Scale, out: Path, data_root: Path | None, workers: int, show: Show, logger: str | None = None
) -> Outcome:
    """Train and evaluate what is missing of one experiment."""
    data, note = faces(data_root or default_data_root()) if name == "celeba" else (None, None)
    keep_request(out, scale, {} if note is None else {name: note})
    if data == "":
        return Outcome(name, note=note)
    common = {"data_root": str(data_root) if data_root else None, "logger": logger}
    experiment: Experiment = registry.lookup("experiment", name)
    comparisons = experiment.comparisons(scale, out / name, data, **common)
    for comparison in comparisons:
        comparison.run(workers, show)
    return Outcome(name, tuple(comparisons), note)


def keep_request(out: Path, scale: Scale, notes: Mapping[str, str] | None = None) -> None:
    """Note in ``out`` at which scale it is, and what must be said of the data; another scale is refused."""
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
    """What a directory holds of the paper's experiments."""
    try:
        request = record(_Request, parse_table(read_text(out / REQUEST)))
        scale, notes = request.scale, request.notes
    except (OSError, ValueError):
        raise RunError(f"{out} holds no reproduction: make one with `wiseale reproduce`") from None
    outcomes = {}
    for name in registry.EXPERIMENTS:
        folders = [folder for folder in (out / name, out / name / "sweep") if (folder / "comparison.json").exists()]
        if folders or name in notes:
            outcomes[name] = Outcome(name, tuple(read_comparison(folder) for folder in folders), notes.get(name))
    return Reproduction(scale, outcomes)
