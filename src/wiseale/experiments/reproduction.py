"""Carry out the paper's experiments one after the other, each as far as it can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wiseale.data import default_data_root
from wiseale.experiments.claims import Evidence
from wiseale.experiments.comparison import Comparison, Result, Summary, summarize
from wiseale.experiments.jobs import Failure, Show
from wiseale.experiments.reproduce import EXPERIMENTS, Scale, faces


@dataclass(frozen=True)
class Outcome:
    """What came of one experiment; ``note`` says what a reader must know of its data."""

    name: str
    comparisons: tuple[Comparison, ...] = ()
    failures: tuple[Failure, ...] = ()
    note: str | None = None

    @property
    def results(self) -> list[Result]:
        """Every evaluated run, the sweep's included."""
        return [result for comparison in self.comparisons for result in comparison.results()]

    @property
    def summary(self) -> Summary:
        """Means and intervals, the sweep's included."""
        return summarize(self.results)


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
    if data == "":
        return Outcome(name, note=note)
    common = {"data_root": str(data_root) if data_root else None, "logger": logger}
    comparisons = EXPERIMENTS[name].comparisons(scale, out / name, data, **common)
    failures: list[Failure] = []
    for comparison in comparisons:
        failures += comparison.carry_out(workers, show)
    return Outcome(name, tuple(comparisons), tuple(failures), note)
