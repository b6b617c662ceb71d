"""Confidence intervals of differences and ratios between two systems, over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from scipy.special import fdtri, stdtrit


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

    >>> str(difference_interval([1.0, 2.0, 3.0], [5.0, 6.0, 7.0]))
    '-4 [-6.267, -1.733]'
    """
    difference = fmean(first) - fmean(second)
    parts = [(variance(values) / len(values), len(values) - 1) for values in (first, second)]
    error = sum(part for part, _ in parts)
    if error == 0:
        return Interval(difference, difference, difference)
    freedom = error**2 / sum(part**2 / degrees for part, degrees in parts)
    half = float(stdtrit(freedom, 0.5 + confidence / 2)) * math.sqrt(error)
    return Interval(difference, difference - half, difference + half)


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Mean with Student's interval; two values or more."""
    mean, n = fmean(values), len(values)
    half = float(stdtrit(n - 1, 0.5 + confidence / 2)) * math.sqrt(variance(values) / n)
    return Interval(mean, mean - half, mean + half)


def spread_ratio_interval(first: Sequence[float], second: Sequence[float], confidence: float = 0.95) -> Interval:
    """Ratio of the standard deviations of log values, first over second, with the interval of the F distribution.

    Logarithms compare relative spreads: a system with larger values is not called less steady for that. All values
    must be above 0. Where the second has no spread the ratio is infinite, or nan if neither has any.

    >>> str(spread_ratio_interval([1.0, 1.1, 1.2], [1.0, 2.0, 4.0], confidence=0.8))
    '0.1316 [0.04385, 0.3947]'
    """
    spreads = [variance([math.log(value) for value in values]) for values in (first, second)]
    if spreads[1] == 0:
        value = math.nan if spreads[0] == 0 else math.inf
        return Interval(value, value, value)
    degrees = len(first) - 1, len(second) - 1
    ratio = spreads[0] / spreads[1]
    low, high = (float(fdtri(*degrees, 0.5 + sign * confidence / 2)) for sign in (1, -1))
    return Interval(math.sqrt(ratio), math.sqrt(ratio / low), math.sqrt(ratio / high))
