"""Held-out rows: a part of the rows up to a cap, the same as ever below it, by number where there are many rows."""

import hashlib
import json
import tracemalloc
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from tests.journals import MemoryJournal

from wiseale.config import TrainConfig
from wiseale.data import load_dataset
from wiseale.data.dataset import Rows
from wiseale.processes.world import World
from wiseale.randomness import KeyedOrder, permutation, shuffled
from wiseale.runs.history import FREE, _experiment
from wiseale.runs.record import RunRecord
from wiseale.training import split
from wiseale.training.batches import Batches, fit_units
from wiseale.training.loop import fit
from wiseale.training.plan import make_plan, resolve
from wiseale.training.setup import Work
from wiseale.training.split import MOST_HELD_OUT, RowsExcept, held_out_count, split_rows


def settings(part=0.1, most=MOST_HELD_OUT, seed=4):
    return TrainConfig(data="x", held_out=part, held_out_most=most, seed=seed)


@pytest.mark.parametrize(
    ("n", "part", "most", "expected"),
    [
        *((1000, 0.05, None, 50), (10, 0.05, None, 0), (3, 0.9, None, 1), (2, 0.5, None, 0), (100, 0, None, 0)),
        *((1000, 0.05, 50, 50), (1000, 0.05, 49, 49), (10**9, 0.1, 50_000, 50_000), (10**9, 0.1, None, 10**8)),
        *((500_000, 0.1, 50_000, 50_000), (4, 0.9, 50_000, 2)),
    ],
)
def test_held_out_count(n, part, most, expected):
    assert held_out_count(n, part, most) == expected


def test_split_is_a_partition_that_follows_the_seed():
    train, held = split_rows(200, settings())
    assert sorted([*train, *held]) == list(range(200))
    assert len(held) == 20
    assert np.array_equal(split_rows(200, settings()).held_out, held)
    assert not np.array_equal(split_rows(200, settings(seed=5)).held_out, held)


def earlier_split(n, part, seed):
    """The rule before there was a cap, written out."""
    order = permutation(n, seed, "held out").numpy()
    held = min(round(n * part), n - 2)
    return np.sort(order[held:]), np.sort(order[:held])


@pytest.mark.parametrize("most", [None, MOST_HELD_OUT])
def test_below_the_cap_the_rows_are_those_of_earlier_versions(most):
    for got, expected in zip(split_rows(3000, settings(most=most)), earlier_split(3000, 0.1, 4), strict=True):
        assert np.array_equal(got, expected)


def test_the_cap_keeps_some_of_them():
    train, held = split_rows(3000, settings(most=100))
    assert len(held) == 100
    assert np.isin(held, earlier_split(3000, 0.1, 4)[1]).all()
    assert sorted([*train, *held]) == list(range(3000))


def test_many_rows_are_split_without_a_list(monkeypatch):
    monkeypatch.setattr(split, "MOST_LISTED", 100)
    train, held = split_rows(1000, settings())
    assert isinstance(train, RowsExcept)
    numbers = train[torch.arange(len(train))].numpy()
    assert np.array_equal(numbers, np.setdiff1d(np.arange(1000), held))
    old = split_rows(1000, settings(most=None))
    assert np.array_equal(old.held_out, earlier_split(1000, 0.1, 4)[1])


def test_a_billion_rows_are_split_in_little_memory():
    tracemalloc.start()
    train, held = split_rows(10**9, settings())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
    assert len(held) == len(np.unique(held)) == MOST_HELD_OUT
    assert len(train) == 10**9 - MOST_HELD_OUT
    assert np.array_equal(train[torch.tensor([0, 10**9 - MOST_HELD_OUT - 1])].numpy(), ends(held))
    # a tenth of the rows are in each tenth of the numbers: 5 standard deviations are 340
    assert np.abs(np.bincount(held * 10 // 10**9) - MOST_HELD_OUT / 10).max() < 340


def ends(held):
    """The first and the last number that is not held out."""
    first = next(number for number in range(10**9) if number not in held[:100])
    last = next(number for number in range(10**9 - 1, 0, -1) if number not in held[-100:])
    return np.array([first, last])


def test_the_digest_of_earlier_runs_stays():
    """A checkpoint holds a digest of all settings: one that an old run has not got must not change it."""
    resolved = resolve(TrainConfig(data="sine:n=100", held_out=0.1), load_dataset("sine:n=100"))
    facts = Work.prepare(resolved, load_dataset("sine:n=100")).facts
    old = replace(resolved, held_out_most=None)
    assert asdict(resolved)["held_out_most"] == MOST_HELD_OUT
    assert make_plan(old).listed_order
    assert not make_plan(resolved).listed_order
    known_then = {name: value for name, value in asdict(old).items() if name not in (*FREE, "held_out_most")}
    text = json.dumps([known_then, asdict(facts)], sort_keys=True)
    assert _experiment(RunRecord(old, facts)) == hashlib.sha256(text.encode()).hexdigest()
    digests = {_experiment(RunRecord(one, facts)) for one in (old, resolved, replace(resolved, held_out_most=7))}
    assert len(digests) == 3


def large(monkeypatch):
    """Sets above 100 rows count as large."""
    monkeypatch.setattr("wiseale.randomness.MOST_LISTED", 100)
    monkeypatch.setattr(split, "MOST_LISTED", 100)


def work(**options):
    asked = TrainConfig(data="sine:n=320", batch_size=32, max_epochs=2, latent_dim=2, held_out=0.1, **options)
    dataset = load_dataset(asked.data)
    return Work.prepare(resolve(replace(asked, threads=1, checkpoint_every=1), dataset), dataset)


def read_rows(one, monkeypatch):
    rows = []
    reading = one.train.read_part
    monkeypatch.setattr(one.train, "read_part", lambda at, *rest: rows.append(at.tolist()) or reading(at, *rest))
    return rows


def test_a_large_set_resumed_in_mid_epoch_reads_the_same_rows(monkeypatch):
    large(monkeypatch)
    whole, parts = work(), work()
    expected, got = read_rows(whole, monkeypatch), read_rows(parts, monkeypatch)
    assert fit(whole.learner, whole.train, whole.held_out, whole.plan, MemoryJournal())
    assert not fit(parts.learner, parts.train, parts.held_out, parts.plan, MemoryJournal(stop_after=(3,)))
    assert len(got) == 3
    assert fit(parts.learner, parts.train, parts.held_out, parts.plan, MemoryJournal())
    assert got == expected
    first = [row for batch in expected[: len(expected) // 2] for row in batch]
    assert len(set(first)) == len(first)
    assert max(first) < len(whole.train)
    for name, weight in whole.learner.modules.state_dict().items():
        assert torch.equal(weight, parts.learner.modules.state_dict()[name])


def test_ranks_share_a_large_order_without_overlap(monkeypatch):
    """Every rank computes the order of the whole batch and reads its part of it."""
    large(monkeypatch)
    orders = [shuffled(1000, 0, "order", 3) for _ in range(4)]
    assert isinstance(orders[0], KeyedOrder)
    read = [
        orders[rank][start : start + 64][World(rank, 4).part(64)]
        for start in range(0, 1000 - 63, 64)
        for rank in range(4)
    ]
    together = torch.cat(read)
    assert len(together.unique()) == len(together) == 1000 // 64 * 64
    assert torch.equal(together, orders[0][: len(together)])


def test_numbers_left_out_are_never_read():
    x = np.arange(50, dtype=np.float32)[:, None]
    left_out = np.array([0, 7, 8, 49])
    listed = Batches(Rows(x), np.setdiff1d(np.arange(50), left_out))
    computed = Batches(Rows(x), RowsExcept(50, left_out))
    assert len(computed) == 46
    assert torch.equal(computed.read(torch.arange(46)), listed.read(torch.arange(46)))


def test_mean_and_scale_of_a_large_set_come_from_some_of_its_rows(monkeypatch):
    dataset = load_dataset("sine:n=3000")
    dataset = replace(dataset, space=replace(dataset.space, scaling="global"))
    index = RowsExcept(3000, np.arange(10))
    exact = fit_units(dataset, index)
    assert torch.equal(exact.mean, fit_units(dataset, np.arange(10, 3000)).mean)
    monkeypatch.setattr("wiseale.training.batches.LARGE_BYTES", 0)
    monkeypatch.setattr("wiseale.training.sample.MOST_ROWS", 500)
    some = fit_units(dataset, index, seed=1)
    assert not torch.equal(some.mean, exact.mean)
    assert float(some.scale) == pytest.approx(float(exact.scale), rel=0.05)


def test_a_run_remembers_where_its_data_is(tmp_path, monkeypatch):
    """Also when it is evaluated from another folder."""
    monkeypatch.chdir(tmp_path)
    asked = TrainConfig(data="sine:n=100", data_root="here/data")
    assert resolve(asked, load_dataset("sine:n=100")).data_root == str(tmp_path / "here" / "data")
