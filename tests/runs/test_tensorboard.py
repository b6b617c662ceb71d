"""Events for TensorBoard, read back by its own reader: what metrics.jsonl says, each step once."""

import shutil
import sys
import time

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from wiseale.cli import main
from wiseale.runs.directory import RunDirectory

SETTINGS = [
    *("--network", "mlp:hidden=8", "--max-epochs", "4", "--batch-size", "8", "--checkpoint-every", "3"),
    "--no-figures",
]


def wiseale(*arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


@pytest.fixture
def run(tmp_path):
    table = tmp_path / "table.npy"
    np.save(table, np.random.default_rng(0).normal(size=(40, 5)))
    out = tmp_path / "run"
    assert wiseale("train", table, *SETTINGS, "--logger", "tensorboard", "--out", out) == 0
    return RunDirectory.open(out)


def events(run):
    """Tag → (step, value, time) of every event in the directory."""
    read = EventAccumulator(str(run.tensorboard))
    read.Reload()
    return {tag: [(e.step, e.value, e.wall_time) for e in read.Scalars(tag)] for tag in read.Tags()["scalars"]}


def assert_as_in_metrics(run):
    metrics, found = run.read_metrics(), events(run)
    for part in ("train", "held_out"):
        for term in getattr(metrics[0], part):
            told = [(step, value) for step, value, _ in found[f"{part}/{term}"]]
            expected = [(record.step, pytest.approx(getattr(record, part)[term], rel=1e-6)) for record in metrics]
            assert told == expected, term
    assert [value for _, value, _ in found["lr"]] == pytest.approx([record.lr for record in metrics])
    assert len(found["samples_per_second"]) == len(metrics)


def test_events_say_what_the_metrics_say(run):
    assert len(run.read_metrics()) == 4
    assert_as_in_metrics(run)


def test_a_resumed_run_has_every_step_once(run):
    whole = run.read_metrics()
    shutil.rmtree(run.model)
    newest = max(run.checkpoints.iterdir(), key=lambda path: int(path.name))
    shutil.rmtree(newest)  # back to step 15 of 20: the last epoch is done again
    (run.tensorboard / "events.out.tfevents.1.killed").write_bytes(b"half an ev")
    before = time.time()
    assert wiseale("resume", run.path) == 0
    assert run.read_metrics() == whole
    assert_as_in_metrics(run)
    times = [at for _, _, at in events(run)["train/loss"]]
    assert times == sorted(times)
    assert times[0] < times[-1] > before  # the last epoch was trained again


def test_without_the_package_nothing_is_begun(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    out = tmp_path / "run"
    assert wiseale("train", "sine:n=100,n_test=10", "--logger", "tensorboard", "--out", out) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "--logger tensorboard needs a package that is missing: pip install 'wiseale[logging]'" in told
    assert not out.exists()
    assert wiseale("reproduce", "sine", "--scale", "smoke", "--logger", "tensorboard", "--out", out) == 2
    assert "wiseale[logging]" in capsys.readouterr().err
    assert not out.exists()
