"""The number of threads: 1 for small networks; --threads auto tries counts, keeps the fastest, disturbs nothing."""

from dataclasses import replace

import pytest
import torch

from wiseale.config import SettingError, TrainConfig, build
from wiseale.data import load_dataset
from wiseale.experiments.comparison import prepare_comparison
from wiseale.platform.machine import cores
from wiseale.spaces import plain_space
from wiseale.training import plan
from wiseale.training.plan import resolve


def test_the_fastest_count_is_kept_and_nothing_else_changes(monkeypatch):
    """A clock that runs by the number of threads decides, whatever this machine is like."""
    monkeypatch.setattr(plan, "cores", lambda: 6)
    clock = [0.0]

    def tick():
        clock[0] += {1: 3.0, 2: 2.0, 4: 1.0, 6: 4.0}[torch.get_num_threads()]
        return clock[0]

    monkeypatch.setattr(plan.time, "perf_counter", tick)
    before, state = torch.get_num_threads(), torch.random.get_rng_state()
    found = plan.fastest_threads(
        build("network", "mlp:hidden=4"), build("likelihood", "gaussian"), plain_space((3,)), 2, 8, "cpu"
    )
    assert found == 4
    assert torch.get_num_threads() == before
    assert torch.equal(torch.random.get_rng_state(), state)


def test_the_choice_is_stored():
    asked = TrainConfig(data="sine:n=100,n_test=1", network="mlp:hidden=4", threads="auto")
    assert resolve(asked, load_dataset(asked.data)).threads in range(1, cores() + 1)


def test_runs_side_by_side_are_not_measured(tmp_path):
    asked = TrainConfig(data="sine:n=100,n_test=1", threads="auto")
    with pytest.raises(SettingError, match="side by side"):
        prepare_comparison(asked, ("aevb",), 1, tmp_path / "out", 100)


def test_multiply_adds_are_counted_without_computing():
    """An MLP of widths w has Σ w_i·w_{i+1} multiply-adds a row; 30 → h → 2 codes and sigma, 2 → h → 30."""
    rows = plan.SMALL_STEP // (30 * 1000 + 2 * 1000 * 2 + 1000 * 2 + 1000 * 30)
    pair = build("network", "mlp:hidden=1000,start=none"), build("likelihood", "gaussian")
    assert plan.is_small_step(*pair, plain_space((30,)), 2, rows - 1)
    assert not plan.is_small_step(*pair, plain_space((30,)), 2, rows + 1)


def test_small_networks_train_on_one_thread_and_large_ones_do_not(monkeypatch):
    monkeypatch.setattr("wiseale.training.plan.cores", lambda: 4)
    asked = TrainConfig(data="sine:n=200,n_test=1", device="cpu")
    dataset = load_dataset(asked.data)
    small, given = replace(asked, network="mlp:hidden=8"), replace(asked, network="mlp:hidden=8", threads=3)
    assert [resolve(one, dataset).threads for one in (asked, small, given)] == [4, 1, 3]


def test_torch_threads_are_restored():
    before = torch.get_num_threads()
    with plan.torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
