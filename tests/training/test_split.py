"""Held-out rows: a part of the rows up to a cap; the rest are each read once in an epoch."""

import re
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from tests.journals import MemoryJournal

from wiseale.config import TrainConfig
from wiseale.data import load_dataset
from wiseale.randomness import shuffled
from wiseale.training.batches import MOST_HELD_OUT, held_out_count, split_rows
from wiseale.training.loop import fit
from wiseale.training.plan import resolve
from wiseale.training.setup import Work


def split_of(n, part=0.1, most=MOST_HELD_OUT, seed=4):
    return split_rows(n, part, most, seed)


@pytest.mark.parametrize(
    ("n", "part", "most", "expected"),
    [
        *((1000, 0.05, 51, 50), (10, 0.05, 9, 0), (3, 0.9, 9, 1), (2, 0.5, 9, 0), (100, 0, 9, 0)),
        *((1000, 0.05, 50, 50), (1000, 0.05, 49, 49), (10**9, 0.1, 50_000, 50_000)),
        *((500_000, 0.1, 50_000, 50_000), (4, 0.9, 50_000, 2)),
    ],
)
def test_held_out_count(n, part, most, expected):
    assert held_out_count(n, part, most) == expected


def test_split_is_a_partition_that_follows_the_seed():
    train, held = split_of(200)
    assert sorted([*train, *held]) == list(range(200))
    assert len(held) == 20
    assert np.array_equal(split_of(200).held_out, held)
    assert not np.array_equal(split_of(200, seed=5).held_out, held)


def whole_split(n, part, seed):
    """The rule without a cap, written out."""
    order = shuffled(n, seed, "held out").numpy()
    held = min(round(n * part), n - 2)
    return np.sort(order[held:]), np.sort(order[:held])


def test_below_the_cap_the_rows_are_those_without_one():
    for got, expected in zip(split_of(3000), whole_split(3000, 0.1, 4), strict=True):
        assert np.array_equal(got, expected)


def test_the_cap_keeps_some_of_them():
    train, held = split_of(3000, most=100)
    assert len(held) == 100
    assert np.isin(held, whole_split(3000, 0.1, 4)[1]).all()
    assert sorted([*train, *held]) == list(range(3000))


def work(**options):
    asked = TrainConfig(data="sine:n=320", batch_size=32, max_epochs=2, latent_dim=2, held_out=0.1, **options)
    dataset = load_dataset(asked.data)
    return Work.prepare(resolve(replace(asked, threads=1, checkpoint_every=1), dataset), dataset)


def read_rows(one, monkeypatch):
    rows = []
    reading = one.train.read_part
    monkeypatch.setattr(one.train, "read_part", lambda at, *rest: rows.append(at.tolist()) or reading(at, *rest))
    return rows


def test_a_run_resumed_in_mid_epoch_reads_the_same_rows(monkeypatch):
    whole, parts = work(), work()
    expected, got = read_rows(whole, monkeypatch), read_rows(parts, monkeypatch)
    assert fit(whole.learner, whole.train, whole.held_out, whole.settings, MemoryJournal())
    assert not fit(parts.learner, parts.train, parts.held_out, parts.settings, MemoryJournal(stop_after=(3,)))
    assert len(got) == 3
    assert fit(parts.learner, parts.train, parts.held_out, parts.settings, MemoryJournal())
    assert got == expected
    first = [row for batch in expected[: len(expected) // 2] for row in batch]
    assert len(set(first)) == len(first)
    assert max(first) < len(whole.train)
    for name, weight in whole.learner.modules.state_dict().items():
        assert torch.equal(weight, parts.learner.modules.state_dict()[name])


def test_a_run_remembers_where_its_data_is(tmp_path, monkeypatch):
    """Also when it is evaluated from another folder."""
    monkeypatch.chdir(tmp_path)
    asked = TrainConfig(data="sine:n=100", data_root="here/data")
    assert resolve(asked, load_dataset("sine:n=100")).data_root == str(tmp_path / "here" / "data")


def test_as_many_rows_are_held_out_at_the_most_as_the_help_says():
    (item,) = [item for item in fields(TrainConfig) if item.name == "held_out_most"]
    most = int(re.search(r"default: (\d+)", item.metadata["help"])[1])
    assert [held_out_count(n, 0.1) for n in (10 * most - 10, 10 * most, 10 * most + 10, 100 * most)] == [
        *(most - 1, most, most, most)
    ]
