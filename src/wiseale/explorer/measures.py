"""The measures in each run's evaluation.json side by side, and differences between systems over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wiseale.errors import WiseAleError
from wiseale.evaluation.record import Evaluation
from wiseale.experiments.comparison import COMPARISON, Comparison, System, read_comparison
from wiseale.experiments.intervals import Estimate, estimate
from wiseale.runs.directory import RunDirectory, read


@dataclass(frozen=True)
class Measure:
    """One measure: its value in every run (None where it is not defined), and differences from the first run."""

    name: str
    question: str
    values: tuple[float | None, ...]
    differences: tuple[Estimate | None, ...]


def measures_of(runs: Sequence[RunDirectory | None]) -> tuple[Measure, ...]:
    """Every measure of the runs that were evaluated, in the order of reading.

    A difference is the mean over seeds of (system of that run − system of the first run), paired by seed, with a 95 %
    interval. It exists where both runs belong to one comparison with two or more evaluated seeds.
    """
    found = [_evaluation(run) for run in runs]
    questions = {name: title for one in found if one for title, names in one.groups.items() for name in names}
    places = [_place(run) for run in runs]
    result = []
    for name, question in questions.items():
        values = tuple(None if one is None else one.measures.get(name) for one in found)
        if any(value is not None for value in values):
            differences = tuple(_difference(places[0], place, name) for place in places)
            result.append(Measure(name, question, values, differences))
    return tuple(result)


def _evaluation(run: RunDirectory | None) -> Evaluation | None:
    if run is None or not run.evaluation.is_file():
        return None
    return read(Evaluation.from_json, run.evaluation)


@dataclass(frozen=True)
class _Place:
    """Where a run stands in its comparison, and the evaluations of its system by seed."""

    out: Path
    system: System
    by_seed: dict[int, Evaluation]


def _place(run: RunDirectory | None) -> _Place | None:
    if run is None or len(run.path.parents) < 3:
        return None
    out = run.path.parents[2]
    if not (out / COMPARISON).is_file():
        return None
    try:
        comparison = read_comparison(out)
    except WiseAleError:
        return None
    for system in comparison.systems:
        if system.folder == run.path.parent.name:
            return _Place(out, system, _by_seed(comparison, system))
    return None


def _by_seed(comparison: Comparison, system: System) -> dict[int, Evaluation]:
    results = [result for result in comparison.results() if result.system == system]
    return {result.seed: result.evaluation for result in results}


def _difference(first: _Place | None, other: _Place | None, name: str) -> Estimate | None:
    if first is None or other is None or first.out != other.out or first.system == other.system:
        return None
    pairs = [
        (first.by_seed[seed].measures.get(name), other.by_seed[seed].measures.get(name))
        for seed in sorted(first.by_seed.keys() & other.by_seed.keys())
    ]
    differences = [float(b) - float(a) for a, b in pairs if a is not None and b is not None]
    return estimate(differences) if len(differences) > 1 else None
