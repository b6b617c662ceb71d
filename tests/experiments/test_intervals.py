"""Intervals over seeds against scipy's tests and against simulated coverage."""

import math

import numpy as np
import pytest
from scipy import stats

from wiseale.experiments.intervals import (
    difference_interval,
    mean_interval,
    seeds_to_decide,
    spread_ratio_interval,
)


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 3), (3, 7)])
@pytest.mark.parametrize("confidence", [0.95, 0.996])
def test_differences_are_welchs(n, m, confidence):
    draws = np.random.default_rng(n + m)
    first, second = draws.normal(1, 2, n), draws.normal(0, 0.5, m)
    found = difference_interval(list(first), list(second), confidence)
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(confidence)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_means_are_students():
    values = [1.0, 3.0, 4.5]
    low, high = stats.t.interval(0.9, 2, np.mean(values), stats.sem(values))
    found = mean_interval(values, 0.9)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_the_spread_ratio_covers_the_true_one():
    draws = np.random.default_rng(0)
    covered = 0
    for _ in range(2000):
        first, second = np.exp(draws.normal(0, 0.3, 3)), np.exp(draws.normal(5, 0.1, 4))
        found = spread_ratio_interval(list(first), list(second), 0.9)
        covered += found.low < 3 < found.high
    assert covered / 2000 == pytest.approx(0.9, abs=4 * math.sqrt(0.09 / 2000))


SAME, SPREAD = [2.0, 2.0, 2.0], [1.0, 1.1, 1.2]


def test_equal_values_alone_decide_nothing():
    found = difference_interval([1.9, 1.9, 1.9], SAME)
    assert (found.value, found.low, found.high) == (pytest.approx(-0.1), -math.inf, math.inf)
    assert (mean_interval(SAME).low, mean_interval(SAME).high) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("first", "second", "ratio"), [(SPREAD, SAME, math.inf), (SAME, SPREAD, 0), (SAME, SAME, None)]
)
def test_a_spread_of_equal_values_is_unknown(first, second, ratio):
    found = spread_ratio_interval(first, second)
    assert (found.low, found.high) == (0, math.inf)
    assert math.isnan(found.value) if ratio is None else found.value == ratio


def test_a_constant_side_leaves_the_others_student_interval():
    low, high = stats.t.interval(0.95, 2, np.mean(SPREAD) - 2, stats.sem(SPREAD))
    found = difference_interval(SPREAD, SAME)
    assert (found.low, found.high) == pytest.approx((low, high))


@pytest.mark.parametrize(("spreads", "confidence"), [((1.0, 1.0), 0.95), ((1.0, 3.0), 0.996), ((0.5,), 0.95)])
def test_as_many_seeds_as_advised_decide_and_fewer_do_not(spreads, confidence):
    """Samples of n seeds with the same means and variances: the interval excludes 0 from the advised n on."""

    def sample(mean, spread, n):
        values = stats.norm.ppf((np.arange(n) + 0.5) / n)
        return list(mean + spread * (values - values.mean()) / values.std(ddof=1))

    def interval(n):
        samples = [sample(float(place == 0), spread, n) for place, spread in enumerate(spreads)]
        return difference_interval(*samples, confidence) if len(samples) == 2 else mean_interval(samples[0], confidence)

    start = [sample(float(place == 0), spread, 3) for place, spread in enumerate(spreads)]
    advised = seeds_to_decide(start, confidence=confidence)
    assert advised > 2
    assert interval(advised).low > 0 > interval(advised - 1).low
    assert seeds_to_decide(start, limit=1.0, confidence=confidence) is None  # the mean itself, or the difference
    assert seeds_to_decide([SAME, SAME]) is None
