"""What a claim says about a measure of one or two systems, each statement tested by an interval over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import ClassVar, Literal

from wiseale.experiments.comparison import System
from wiseale.experiments.intervals import (
    MINIMUM_SEEDS,
    MOST_SEEDS,
    Interval,
    difference_interval,
    mean_interval,
    seeds_to_decide,
    spread_ratio_interval,
)
from wiseale.paper.rows import Evidence, collapsed_seeds

Outcome = Literal["held", "not held", "not decided"]
Samples = Sequence[Sequence[float]]

MARGIN = 0.1  # "alike", "comparable" and "at most so much larger", relative to the other system's mean (ours)

_LOG_DENSITIES = ("training_elbo", "reconstruction")  # without a natural zero: a tenth of their mean says nothing


@dataclass(frozen=True)
class Finding:
    """How a statement came out, with its interval in words."""

    outcome: Outcome
    text: str


@dataclass(frozen=True)
class Relation:
    """A statement about a measure in an experiment's runs, or in those of its control where that has been run."""

    experiment: str
    measure: str
    ours: System
    control: str = field(default="", kw_only=True)

    @property
    def systems(self) -> tuple[System, ...]:
        """The systems whose values it needs."""
        return (self.ours,)

    def samples(self, evidence: Evidence) -> Samples:
        """One sample per system, with one value per seed; empty where there are none."""
        return [self._measures(evidence, system).get(self.measure, ()) for system in self.systems]

    def missing(self, evidence: Evidence) -> list[str]:
        """What is missing of samples with fewer than ``MINIMUM_SEEDS`` values, in words."""
        missing = []
        for system, values in zip(self.systems, self.samples(evidence), strict=True):
            runs, where = self._runs(evidence, system), f"{self.experiment}: {system.name}"
            if len(values) < min(runs, MINIMUM_SEEDS):
                missing.append(f"{where} has a finite {self.measure} in {len(values)} of {runs} seeds")
            elif len(values) < MINIMUM_SEEDS:
                missing.append(f"{where}, {len(values)} of {MINIMUM_SEEDS} seeds")
        return missing

    def collapsed(self, evidence: Evidence) -> list[str]:
        """In how many seeds systems collapsed, in words."""
        counts = [(system, collapsed_seeds(self._measures(evidence, system))) for system in self.systems]
        return [f"{one.name} collapsed in {n} of {self._runs(evidence, one)} seeds" for one, n in counts if n]

    def test(self, samples: Samples, confidence: float) -> Finding:
        """The outcome for these samples."""
        raise NotImplementedError

    def _runs(self, evidence: Evidence, system: System) -> int:
        return max(map(len, self._measures(evidence, system).values()), default=0)

    def _measures(self, evidence: Evidence, system: System) -> Mapping[str, Sequence[float]]:
        return evidence.of(self.experiment, self.control).get(system.name, {})


@dataclass(frozen=True)
class _Pair(Relation):
    """Two systems and one measure."""

    theirs: System

    @property
    def systems(self) -> tuple[System, ...]:
        """Both."""
        return (self.ours, self.theirs)

    def _around(self, margin: float, samples: Samples, confidence: float) -> tuple[tuple[Interval, Interval], Outcome]:
        """Whether ours lies between (1 − margin)·theirs and (1 + margin)·theirs, with the intervals that say so."""
        below, above = (_against(factor, samples, confidence) for factor in (1 - margin, 1 + margin))
        return (below, above), _by_side(-_side(below) * _side(above))

    def _finding(self, samples: Samples, what: str, outcome: Outcome, remark: str = "") -> Finding:
        ours, theirs = (f"{fmean(values):.4g}" for values in samples)
        means = f"{self.ours.name} {ours} against {self.theirs.name} {theirs}"
        return Finding(outcome, f"{self.experiment}, {self.measure}: {means}; {what}: {outcome}{remark}")


@dataclass(frozen=True)
class _Ordered(_Pair):
    """One mean is the smaller: Welch's interval of ours − theirs lies on the stated side of 0 (not held: the other)."""

    sign: ClassVar[int]  # of ours − theirs where the statement holds

    def test(self, samples: Samples, confidence: float) -> Finding:
        """An open one says whether the two are alike, or how many seeds it takes."""
        interval = _against(1, samples, confidence)
        outcome = _by_side(self.sign * _side(interval))
        remark = ""
        if outcome == "not decided":
            alike = self.measure not in _LOG_DENSITIES and self._around(MARGIN, samples, confidence)[1] == "held"
            remark = f" (alike within {100 * MARGIN:g} %)" if alike else _seeds(samples, 0.0, confidence)
        return self._finding(samples, f"difference {interval}", outcome, remark)


class Below(_Ordered):
    """``ours`` has the smaller mean."""

    sign = -1


class Above(_Ordered):
    """``ours`` has the larger mean."""

    sign = 1


@dataclass(frozen=True)
class Comparable(_Pair):
    """The means differ by at most ``margin`` times theirs, a test of equivalence by two one-sided tests.

    The intervals of ours − (1 ± margin)·theirs lie on different sides of 0 (not held: on the same side). Theirs is
    estimated too, so each interval counts its spread.
    """

    margin: float = MARGIN

    def test(self, samples: Samples, confidence: float) -> Finding:  # noqa: D102
        intervals, outcome = self._around(self.margin, samples, confidence)
        pairs = zip((1 - self.margin, 1 + self.margin), intervals, strict=True)
        what = ", ".join(f"difference from {factor:g} times the latter {interval}" for factor, interval in pairs)
        return self._finding(samples, what, outcome)


@dataclass(frozen=True)
class NotAbove(_Pair):
    """``ours`` exceeds ``theirs`` by at most ``margin`` times theirs, or by ``floor`` if that is more: non-inferiority.

    Welch's interval of ours − (1 + margin)·theirs lies below 0 (not held: above 0); with the floor, that of
    ours − theirs lies below the floor. A measure that can be 0 needs a floor: its estimate is then noise of either
    sign, and a tenth of it no margin.
    """

    margin: float = MARGIN
    floor: float = 0.0

    def test(self, samples: Samples, confidence: float) -> Finding:  # noqa: D102
        by_floor = self.margin * fmean(samples[1]) < self.floor
        factor, limit = (1.0, self.floor) if by_floor else (1 + self.margin, 0.0)
        interval = _against(factor, samples, confidence)
        outcome = _by_side(-_side(interval, limit))
        what = f"difference {interval}, limit {limit:g}"
        if factor != 1:
            what = f"difference from {factor:g} times the latter {interval}"
        scaled = [samples[0], [factor * value for value in samples[1]]]
        remark = _seeds(scaled, limit, confidence) if outcome == "not decided" else ""
        return self._finding(samples, what, outcome, remark)


@dataclass(frozen=True)
class Steadier(_Pair):
    """``ours`` varies less from seed to seed: the ratio of the relative spreads, by its F interval, is below 1."""

    def test(self, samples: Samples, confidence: float) -> Finding:  # noqa: D102
        if min(min(values) for values in samples) <= 0:
            text = f"{self.experiment}, {self.measure}: relative spreads need values above 0: not decided"
            return Finding("not decided", text)
        interval = spread_ratio_interval(samples[0], samples[1], confidence)
        return self._finding(samples, f"ratio of relative spreads {interval}", _by_side(-_side(interval, 1)))


@dataclass(frozen=True)
class _Limited(Relation):
    """One system's mean is on one side of a limit: its Student interval is (not held: it is on the other side)."""

    limit: float

    sign: ClassVar[int]  # of mean − limit where the statement holds

    def test(self, samples: Samples, confidence: float) -> Finding:
        interval = mean_interval(samples[0], confidence)
        outcome = _by_side(self.sign * _side(interval, self.limit))
        remark = _seeds(samples, self.limit, confidence) if outcome == "not decided" else ""
        what = f"{self.ours.name} {interval}, limit {self.limit:g}"
        return Finding(outcome, f"{self.experiment}, {self.measure}: {what}: {outcome}{remark}")


class AtMost(_Limited):
    """The mean is at most ``limit``."""

    sign = -1


class AtLeast(_Limited):
    """The mean is at least ``limit``."""

    sign = 1


def _against(factor: float, samples: Samples, confidence: float) -> Interval:
    """Welch's interval of ours − factor·theirs, in which the uncertainty of theirs counts too."""
    return difference_interval(samples[0], [factor * value for value in samples[1]], confidence)


def _side(interval: Interval, limit: float = 0.0) -> int:
    """1 if the interval lies above the limit, −1 if below, 0 if it contains the limit."""
    return 1 if interval.low > limit else -1 if interval.high < limit else 0


def _by_side(side: int) -> Outcome:
    """Held on the stated side, not held on the other, and not decided in between."""
    return "held" if side > 0 else "not held" if side < 0 else "not decided"


def _seeds(samples: Samples, limit: float, confidence: float) -> str:
    """How far a statement is from being decided, at the spread seen so far."""
    seeds = seeds_to_decide(samples, limit, confidence)
    return f" (needs about {seeds} seeds)" if seeds else f" (not even {MOST_SEEDS:,} seeds would decide it)"
