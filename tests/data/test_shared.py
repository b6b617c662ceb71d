"""A dataset that one process has parsed, read by another: nothing about it is lost."""

import dataclasses

import numpy as np

from wiseale.data import Rows, load_dataset
from wiseale.data.dataset import Dataset, Preset
from wiseale.data.shared import read_shared, shared
from wiseale.spaces import Column, NumbersSpace


def rows(n):
    g = np.random.default_rng(n)
    return Rows(g.random((n, 3)), "values", {"class": g.integers(0, 3, n), "angle": g.random(n)})


def test_every_field_is_read_back(tmp_path):
    """Values that differ from the defaults, so that a field that is not stored shows."""
    preset = Preset("mlp:hidden=5", "gaussian", 3, batch_size=16, max_epochs=7)
    space = NumbersSpace((3,), scaling="columns", columns=tuple(map(Column, "abc")), ignored=(("id", "row numbers"),))
    kept = Dataset(
        "table",
        rows(9),
        rows(4),
        preset,
        "sum",
        space,
        True,
        {"angle": 1.0},
        {"lr": 0.5},
    )
    defaults = {field.name: field.default for field in dataclasses.fields(Dataset)}
    assert all(getattr(kept, name) != default for name, default in defaults.items())
    with shared(kept, "table", tmp_path, tmp_path / "arrays"):
        assert read_shared("another", tmp_path) is None
        found = read_shared("table", tmp_path)
    for field in dataclasses.fields(Dataset):
        if field.name not in ("train", "test"):
            assert getattr(found, field.name) == getattr(kept, field.name), field.name
    for split in ("train", "test"):
        before, after = getattr(kept, split), getattr(found, split)
        np.testing.assert_array_equal(after.x, before.x)
        assert (after.x.dtype, after.reading) == (before.x.dtype, before.reading)
        assert list(after.factors) == list(before.factors)
        for name, values in before.factors.items():
            np.testing.assert_array_equal(after.factors[name], values)
    assert read_shared("table", tmp_path) is None


def test_a_comparison_may_ask_for_another_likelihood(tmp_path):
    """Numbers between 0 and 1 are standardised for a Gaussian and not for a Bernoulli, here as in ``wiseale train``."""
    path = tmp_path / "table.csv"
    np.savetxt(path, np.random.default_rng(0).random((20, 3)), delimiter=",", header="a,b,c", comments="")
    parsed = load_dataset(str(path), tmp_path)
    with shared(parsed, str(path), tmp_path, tmp_path / "arrays"):
        assert load_dataset(str(path), tmp_path).scaling_follows_likelihood
