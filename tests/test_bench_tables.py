"""The measures of the benchmarks of tables, on cases whose answers are known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from bench.frames import HIDDEN, MECHANISMS, Mechanism, hide, usable
from bench.impute import Score, judge, spread_score, summaries
from bench.imputers import Filled, means, miss_forest
from bench.synthetic import compare, features, two_sample

RNG = np.random.default_rng(0)


def frame(n: int = 400) -> pd.DataFrame:
    """A number, its noisy double, the level of its sign, and a coin."""
    x = RNG.normal(size=n)
    y = 2 * x + 0.1 * RNG.normal(size=n)
    return pd.DataFrame({"x": x, "y": y, "sign": np.where(x > 0, "+", "-"), "coin": RNG.integers(0, 2, n)})


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_fifth_of_the_cells_is_hidden_and_no_row_whole(mechanism: Mechanism) -> None:
    whole = frame(4000)
    hidden = hide(whole, mechanism, seed=0)
    shares = hidden.mean()
    assert not hidden.all(axis=1).any()
    drivers = shares.index[shares == 0]
    assert len(drivers) == (1 if mechanism == "MAR" else 0)
    assert shares.drop(drivers).to_numpy() == pytest.approx(HIDDEN, abs=0.05)
    higher = whole["x"] > whole["x"].median()
    ratio = hidden.loc[higher, "x"].mean() / hidden.loc[~higher, "x"].mean()
    assert mechanism == "MAR" or (ratio > 2) == (mechanism == "MNAR")


def test_only_columns_that_can_be_learned_are_used() -> None:
    whole = frame().assign(one=1, name=[f"person {k}" for k in range(400)])
    assert list(usable(whole)) == list(frame())


def test_spread_score_of_gaussian_draws_is_their_crps() -> None:
    drawn, truth = RNG.normal(size=(100, 1000)), RNG.normal(size=1000)
    expected = 1 / math.sqrt(math.pi)  # E CRPS of N(0, 1) against itself
    assert spread_score(drawn, truth, lambda a, b: np.abs(a - b)) == pytest.approx(expected, abs=0.04)


def test_judge_knows_the_mean_from_the_truth() -> None:
    whole = frame(300)
    hidden = hide(whole, "MCAR", 0)
    holed = whole.copy()
    for name in whole:
        holed[name] = whole[name].mask(hidden[name])
    empty = Score("", "", "", 0, None, None, None, None, None, 0, 0, 0.0)
    right = judge(whole, holed, hidden, Filled(whole, [whole] * 3), empty)
    assert (right.rmse, right.accuracy, right.crps, right.covered) == (0, 1, 0, right.numbers)
    mean = judge(whole, holed, hidden, means(holed, 0, 19), empty)
    assert mean.rmse == pytest.approx(1, abs=0.1)
    assert mean.accuracy == pytest.approx(0.5, abs=0.1)
    assert mean.covered is not None
    assert mean.covered / mean.numbers == pytest.approx(0.9, abs=0.08)
    forest = judge(whole, holed, hidden, miss_forest(holed, 0, 0), empty)
    assert forest.rmse is not None
    assert forest.rmse < 0.8


def test_a_winner_ranks_first() -> None:
    scores = [
        Score(name, imputer, "MCAR", 0, error, 1 - error, None, None, None, 10, 0, 1.0)
        for name in ("a", "b")
        for imputer, error in (("wiseale", 0.2), ("KNNImputer", 0.5))
    ]
    rows = summaries(scores, ["a", "b"], "")[0].rows
    assert [(row[1], row[4], row[5]) for row in rows] == [("wiseale", 1.0, "0 : 0"), ("KNNImputer", 2.0, "0 : 2")]


def test_copies_are_seen_and_independent_columns_told_apart() -> None:
    train, held_out = frame(150), frame(150)
    shuffled = pd.DataFrame({name: RNG.permutation(held_out[name]) for name in held_out})
    fitted, real, copied, mixed = features(train, held_out, train, shuffled)
    assert two_sample(real, copied, 0, trees=40) < 0.62
    assert two_sample(real, mixed, 0, trees=40) > 0.8
    assert compare(fitted, real, copied, train)[1:] == pytest.approx((0, 1), abs=0.05)
    assert compare(fitted, real, mixed, train)[0] > compare(fitted, real, copied, train)[0] + 0.2
