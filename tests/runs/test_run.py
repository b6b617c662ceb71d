"""A run as others read it: what is in it, and one selection of its rows."""

import json

import numpy as np
import pytest

from wiseale.cli.display import NoDisplay
from wiseale.config import TrainConfig
from wiseale.data import load_dataset
from wiseale.errors import DataError, RunError
from wiseale.objectives import make_objective
from wiseale.runs.run import Run, evenly_spaced, select
from wiseale.runs.train import start

N, HELD_OUT = 60, 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    np.save(folder / "table.npy", np.random.default_rng(0).normal(size=(N, 3)))
    settings = TrainConfig(
        data=str(folder / "table.npy"),
        objective="beta_vae:beta=2",
        lr=5e-4,
        network="mlp:hidden=4",
        held_out=HELD_OUT / N,
        max_epochs=2,
        batch_size=8,
        threads=1,
    )
    start(settings, folder / "run", NoDisplay())
    return folder


@pytest.fixture
def run(folder):
    return Run.open(folder / "run")


def test_it_holds_what_its_files_hold(run):
    config = json.loads((run.path / "config.json").read_text())
    assert run.settings.objective == make_objective("beta_vae", beta=2)
    assert (run.settings.lr, run.facts.n_train) == (config["lr"], config["resolved"]["n_train"]) == (5e-4, N - HELD_OUT)
    assert [epoch.epoch for epoch in run.history] == [1, 2]
    assert run.read_environment().threads == 1


def test_held_out_and_training_rows_are_a_partition_of_the_data(run, folder):
    x = np.load(folder / "table.npy")
    held, train, both = (run.rows(split) for split in ("held out", "train", "all rows"))
    assert sorted([*held.numbers, *train.numbers]) == list(range(N))
    assert (len(held.rows), held.available, held.unseen, train.unseen.any()) == (HELD_OUT, HELD_OUT, None, False)
    assert np.array_equal(both.numbers[both.unseen], held.numbers)
    for part in (held, train, both):
        assert np.array_equal(part.rows.x, x[part.numbers])


def test_unseen_rows_are_the_test_rows_or_else_those_held_out(run):
    assert np.array_equal(run.rows().numbers, run.rows("held out").numbers)
    waves = load_dataset("sine:n=20,n_test=7")
    assert select(waves, "unseen", np.array([3])).split == "test"
    assert np.array_equal(select(waves, "unseen", None).rows.x, waves.test.x)
    with pytest.raises(DataError, match="no test rows"):
        run.rows("test")


def test_all_rows_of_a_set_end_with_the_test_rows():
    waves = load_dataset("sine:n=20,n_test=7")
    every = select(waves, "all rows", np.array([3, 5]))
    assert np.array_equal(every.rows.x, np.concatenate([waves.train.x, waves.test.x]))
    assert np.flatnonzero(every.unseen).tolist() == [3, 5, *range(20, 27)]
    frequency = np.concatenate([waves.train.factors["frequency"], waves.test.factors["frequency"]])
    assert np.array_equal(every.rows.factors["frequency"], frequency)


@pytest.mark.parametrize(("n", "most", "expected"), [(4, None, [0, 1, 2, 3]), (4, 4, [0, 1, 2, 3]), (9, 3, [0, 4, 8])])
def test_some_of_many_rows_reach_from_the_first_to_the_last(n, most, expected):
    assert evenly_spaced(n, most).tolist() == expected


def test_other_data_is_all_unseen_and_has_no_held_out_rows(folder):
    np.save(folder / "other.npy", np.tile([1.0, 2.0, 3.0], (5, 1)))
    other = Run.open(folder / "run", str(folder / "other.npy"))
    assert (other.rows().split, other.rows().unseen, len(other.rows().rows)) == ("all rows", None, 5)
    with pytest.raises(DataError, match="held out"):
        other.rows("held out")


def test_data_that_has_changed_is_refused(folder, tmp_path):
    table, other = folder / "table.npy", tmp_path / "x.npy"
    np.save(other, np.load(table) + 1)
    config = json.loads((folder / "run" / "config.json").read_text())
    moved = tmp_path / "run"
    moved.mkdir()
    (moved / "config.json").write_text(json.dumps(config | {"data": str(other)}))
    (moved / "model").symlink_to(folder / "run" / "model")
    with pytest.raises(DataError, match=r"x.npy has changed since the run was made"):
        Run.open(moved).rows()


def test_rows_of_another_shape_are_refused(folder):
    np.save(folder / "wide.npy", np.zeros((5, 4)))
    with pytest.raises(DataError, match=r"\(4,\).*\(3,\)"):
        Run.open(folder / "run", str(folder / "wide.npy")).rows()


def test_a_run_without_a_model_has_no_codec(folder, tmp_path):
    (tmp_path / "config.json").write_text((folder / "run" / "config.json").read_text())
    run = Run.open(tmp_path)
    assert not run.finished
    with pytest.raises(RunError, match="wiseale resume"):
        run.codec()
