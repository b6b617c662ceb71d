"""Defaults for people's own data: what ``docs/defaults.md`` and the docstrings promise, on each side of every limit."""

import re
from pathlib import Path

import numpy as np
import pytest

from wiseale.config import TrainConfig
from wiseale.data.defaults import choose_length, make_dataset
from wiseale.training.plan import resolve

DRAWS = np.random.default_rng(0)
PAGE = (Path(__file__).parents[2] / "docs" / "defaults.md").read_text(encoding="utf-8")


def promised(pattern):
    """The numbers that the page on defaults says."""
    return [int(number.replace(",", "")) for number in re.search(pattern, PAGE).groups()]


def test_training_lasts_as_long_as_the_page_says():
    steps, epochs, most = promised(r"for ([\d,]+) steps and ([\d,]+) epochs, at most ([\d,]+) steps")
    assert (steps, epochs, most) == (800, 5, 30_000)
    for each in (1, 10, 100, 160):  # steps in an epoch
        length = choose_length(None, "auto", each, watched=True)
        assert (length.patience * each, length.max_epochs * each) == (steps, -(-most // each) * each)
    long = choose_length(None, "auto", 1000, watched=True)
    assert (long.patience, long.max_epochs) == (epochs, 30)


def test_short_epochs_are_watched_every_twenty_steps_and_long_ones_at_their_end():
    every = [choose_length(None, "auto", each, watched=True).watch_every for each in (1, 5, 10, 20, 21, 500)]
    assert every == [20, 4, 2, 1, 1, 1]


def test_a_length_or_a_patience_that_was_given_is_kept():
    given = choose_length(7, "auto", 3, watched=True)
    assert (given.max_epochs, given.patience, given.watch_every) == (7, None, 1)
    waiting = choose_length(None, 3, 100, watched=True)
    assert (waiting.max_epochs, waiting.patience, waiting.watch_every) == (300, 3, 1)


@pytest.mark.parametrize(("patience", "watched"), [("auto", False), (None, True), (None, False)])
def test_without_early_stopping_it_lasts_three_thousand_steps(patience, watched):
    length = choose_length(None, patience, 100, watched=watched)
    assert (length.max_epochs, length.patience) == (30, None)


@pytest.mark.parametrize(
    ("rows", "features", "latent_dim", "batch"),
    [(200, 1, 1, 64), (200, 5, 2, 64), (200, 15, 7, 64), (200, 16, 8, 64), (200, 40, 8, 64), (30, 16, 8, 27)],
)
def test_codes_are_half_the_features_and_a_tenth_of_the_rows_is_held_out(rows, features, latent_dim, batch):
    dataset = make_dataset(DRAWS.normal(size=(rows, features)), "x")
    settings = resolve(TrainConfig(data="x", threads=1), dataset)
    assert (settings.latent_dim, settings.batch_size, settings.lr) == (latent_dim, batch, 5e-4)
    assert settings.held_out * rows == pytest.approx(rows / 10)


BYTES = DRAWS.integers(0, 256, (20, 1, 4, 4)).astype(np.uint8)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (BYTES % 2, ("values", "bernoulli", "none")),
        (BYTES % 2 * 255, ("unit", "bernoulli", "none")),
        (BYTES, ("unit", "gaussian", "global")),
        (BYTES % 3, ("unit", "gaussian", "global")),  # also where the largest value is small
        (BYTES.astype(float), ("values", "gaussian", "global")),
        (BYTES[:, 0].astype(float), ("values", "gaussian", "global")),
        (BYTES.reshape(20, 16).astype(float), ("values", "gaussian", "columns")),
        (BYTES.reshape(20, 16) % 2.0, ("values", "bernoulli", "none")),
        (BYTES.reshape(20, 16) % 2 * 2.0, ("values", "gaussian", "columns")),
    ],
)
def test_the_table_of_make_dataset(x, expected):
    dataset = make_dataset(x, "x")
    likelihood = dataset.preset.likelihood.partition(":")[0]
    assert (dataset.train.reading, likelihood, dataset.space.scaling) == expected
