"""Means over seeds, and confidence intervals of differences and ratios between two systems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from scipy.special import fdtri, stdtrit

MINIMUM_SEEDS = 3  # with fewer, an interval decides nothing
MOST_SEEDS = 1000


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def difference_interval(first: Sequence[float], second: Sequence[float], confidence: float = 0.95) -> Interval:
    """mean(first) − mean(second) with Welch's interval, which allows for unequal variances; two values or more each.

    Equal values on both sides do not show how far other seeds would vary: the interval is then unlimited. Where one
    side has equal values (a system that always collapses), it is the other side's Student interval about a constant.

    >>> str(difference_interval([1.0, 2.0, 3.0], [5.0, 6.0, 7.0]))
    '-4 [-6.267, -1.733]'
    >>> str(difference_interval([1.0, 1.0, 1.0], [2.0, 2.0]))
    '-1 [-inf, inf]'
    """
    difference = fmean(first) - fmean(second)
    parts = [(variance(values) / len(values), len(values) - 1) for values in (first, second)]
    error = sum(part for part, _ in parts)
    freedom = error**2 / sum(part**2 / degrees for part, degrees in parts) if error else 0.0
    return _student_interval(difference, error, freedom, confidence)


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Mean with Student's interval, unlimited where all values are equal; two values or more."""
    return _student_interval(fmean(values), variance(values) / len(values), len(values) - 1, confidence)


def _student_interval(value: float, error: float, freedom: float, confidence: float) -> Interval:
    """``value`` ± Student's quantile times √``error``, its estimated variance; unlimited where that is 0."""
    half = float(stdtrit(freedom, 0.5 + confidence / 2)) * math.sqrt(error) if error else math.inf
    return Interval(value, value - half, value + half)


def seeds_to_decide(samples: Sequence[Sequence[float]], limit: float = 0.0, confidence: float = 0.95) -> int | None:
    """About how many seeds of each system it takes until the interval no longer contains ``limit``.

    ``samples`` are one system's values, whose mean is tested, or two systems', whose difference is. A rough guide:
    means and variances are taken to stay as they are. None where ``MOST_SEEDS`` do not suffice or all values are equal.

    >>> seeds_to_decide([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]), seeds_to_decide([[1.0, 2.0, 3.0]], limit=2.0)
    (9, None)
    """
    means, variances = [fmean(values) for values in samples], [variance(values) for values in samples]
    distance = abs(means[0] - sum(means[1:]) - limit)
    spread = sum(variances)
    if not spread:
        return None
    freedom = spread**2 / sum(one**2 for one in variances)  # Welch's, for each seed beyond the first
    for n in range(2, MOST_SEEDS + 1):
        if float(stdtrit(freedom * (n - 1), 0.5 + confidence / 2)) * math.sqrt(spread / n) < distance:
            return n
    return None


def spread_ratio_interval(first: Sequence[float], second: Sequence[float], confidence: float = 0.95) -> Interval:
    """Ratio of the standard deviations of log values, first over second, with the interval of the F distribution.

    Logarithms compare relative spreads; all values must be above 0. Equal values on one side show nothing of its
    spread: the interval is then from 0 to infinity, and the ratio 0, infinite, or nan if neither side has any spread.

    >>> str(spread_ratio_interval([1.0, 1.1, 1.2], [1.0, 2.0, 4.0], confidence=0.8))
    '0.1316 [0.04385, 0.3947]'
    """
    spreads = [variance([math.log(value) for value in values]) for values in (first, second)]
    if 0 in spreads:
        value = math.nan if spreads[0] == spreads[1] else 0.0 if spreads[0] == 0 else math.inf
        return Interval(value, 0.0, math.inf)
    degrees = len(first) - 1, len(second) - 1
    ratio = spreads[0] / spreads[1]
    low, high = (float(fdtri(*degrees, 0.5 + sign * confidence / 2)) for sign in (1, -1))
    return Interval(math.sqrt(ratio), math.sqrt(ratio / low), math.sqrt(ratio / high))


def adjusted_confidence(statements: int) -> float:
    """Bonferroni: the confidence of each of several intervals so that all hold at once with 95 %.

    >>> adjusted_confidence(1), round(adjusted_confidence(5), 3)
    (0.95, 0.99)
    """
    return 1 - 0.05 / max(1, statements)


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and its 95 % Student interval; with one seed, or equal values, there is none."""

    mean: float
    half_width: float | None
    n: int


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and 95 % interval of a measure over seeds."""
    if len(values) < 2:
        return Estimate(values[0], None, len(values))
    interval = mean_interval(values)
    half_width = interval.high - interval.value
    return Estimate(interval.value, half_width if math.isfinite(half_width) else None, len(values))
