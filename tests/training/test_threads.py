"""--threads auto tries counts, keeps the fastest, and disturbs nothing."""

import pytest
import torch

from wiseale.config import SettingError, TrainConfig
from wiseale.data import load_dataset
from wiseale.experiments.compare import prepare_comparison
from wiseale.platform.machine import cores
from wiseale.training import threads
from wiseale.training.plan import resolve


def test_the_fastest_count_is_kept_and_nothing_else_changes(monkeypatch):
    """A clock that runs by the number of threads decides, whatever this machine is like."""
    monkeypatch.setattr(threads, "cores", lambda: 6)
    clock = [0.0]

    def tick():
        clock[0] += {1: 3.0, 2: 2.0, 4: 1.0, 6: 4.0}[torch.get_num_threads()]
        return clock[0]

    monkeypatch.setattr(threads.time, "perf_counter", tick)
    before, state = torch.get_num_threads(), torch.random.get_rng_state()
    found = threads.fastest_threads("mlp:hidden=4", "gaussian", (3,), 2, 8, "cpu")
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
