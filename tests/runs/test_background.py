"""Checkpoints are written beside training: nothing waits for them but the end, and their errors are not lost."""

import errno
import threading

import numpy as np
import pytest

from wiseale.cli.display import NoDisplay
from wiseale.config import TrainConfig
from wiseale.runs import recorder
from wiseale.runs.checkpoint import save_checkpoint
from wiseale.runs.train import resume, start


@pytest.fixture
def settings(tmp_path):
    np.save(tmp_path / "table.npy", np.random.default_rng(0).normal(size=(50, 3)))
    return TrainConfig(
        data=str(tmp_path / "table.npy"),
        network="mlp:hidden=4",
        max_epochs=6,
        batch_size=9,
        threads=1,
        checkpoint_every=2,
    )


def test_training_goes_on_while_the_disk_is_slow_and_ends_with_the_same_bytes(settings, tmp_path, monkeypatch):
    start(settings, tmp_path / "quick", NoDisplay())
    main, free, saved = threading.current_thread(), threading.Event(), []

    def slow(directory, snapshot):
        assert threading.current_thread() is not main
        saved.append(snapshot.step)
        if len(saved) == 1:
            free.wait(60)  # until the run has ended all its epochs
        return save_checkpoint(directory, snapshot)

    class Display(NoDisplay):
        def epoch(self, record):
            if record.epoch == 6:
                free.set()

    monkeypatch.setattr(recorder, "save_checkpoint", slow)
    start(settings, tmp_path / "slow", Display())
    assert saved == [2, 30]  # those between were due while the first was being written
    for name in ("model/model.safetensors", "metrics.jsonl", "checkpoints/000030/optimizer.safetensors"):
        assert (tmp_path / "slow" / name).read_bytes() == (tmp_path / "quick" / name).read_bytes()


def test_a_checkpoint_holds_the_step_it_was_taken_at(settings, tmp_path, monkeypatch):
    """The copy is made when it is due: training on must not change what is being written."""
    start(settings, tmp_path / "whole", NoDisplay())
    free = threading.Event()

    def late(directory, snapshot):
        if snapshot.step == 2:
            free.wait(60)
            save_checkpoint(directory, snapshot)
        raise OSError(errno.EIO, "gone")

    class Display(NoDisplay):
        def epoch(self, record):
            free.set()

    monkeypatch.setattr(recorder, "save_checkpoint", late)
    with pytest.raises(OSError, match="gone"):
        start(settings, tmp_path / "run", Display())
    monkeypatch.undo()
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["000002"]
    resume(tmp_path / "run", NoDisplay())
    model = "model/model.safetensors"
    assert (tmp_path / "run" / model).read_bytes() == (tmp_path / "whole" / model).read_bytes()
