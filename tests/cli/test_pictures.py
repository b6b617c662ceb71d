"""What `train` and `evaluate` leave and name: pictures, and the lines of epochs."""

import json

import numpy as np
import pytest
from tests.cli.commands import run

from wiseale.cli.display import Pace
from wiseale.config import TrainConfig
from wiseale.experiments.jobs import Job
from wiseale.figures.model_pictures import STANDARD
from wiseale.training.loop import TimedEpochRecord

QUICK = ["--network", "mlp:hidden=8", "--max-epochs", "31", "--batch-size", "8", "--threads", "1"]


@pytest.fixture
def table(tmp_path):
    np.save(tmp_path / "table.npy", np.random.default_rng(0).normal(size=(40, 3)))
    return tmp_path / "table.npy"


def test_train_and_evaluate_leave_and_name_the_pictures(capsys, table, tmp_path):
    out = tmp_path / "run"
    code, shown, _ = run(capsys, "train", table, *QUICK, "--out", out)
    assert code == 0
    *_, pictures, finished = shown.splitlines()
    assert pictures == f"pictures: {out}/figures ({', '.join(f'{name}.png' for name in STANDARD)})"
    assert finished.startswith("finished:")
    assert {path.stem for path in (out / "figures").iterdir()} == set(STANDARD)
    epochs = [int(line.split()[1].split("/")[0]) for line in shown.splitlines() if line.startswith("epoch ")]
    assert {*range(1, 11), 20, 30, 31} <= set(epochs)  # and the last
    assert len(epochs) <= 15

    (out / "figures" / "latent_map.png").unlink()
    code, shown, _ = run(capsys, "evaluate", out, "--nll-samples", "0")
    assert code == 0
    assert shown.splitlines()[-1] == pictures
    assert (out / "figures" / "latent_map.png").exists()


def test_no_figures(capsys, table, tmp_path):
    out = tmp_path / "run"
    code, shown, _ = run(capsys, "train", table, *QUICK, "--no-figures", "--out", out)
    assert code == 0
    assert "pictures" not in shown
    assert json.loads((out / "config.json").read_text())["figures"] is False
    run(capsys, "evaluate", out, "--nll-samples", "0", "--no-figures")
    assert not (out / "figures").exists()
    again = tmp_path / "again"
    run(capsys, "train", "--config", out / "config.json", "--figures", "--out", again)
    assert (again / "figures" / "latent_map.png").exists()


def test_other_data_leaves_no_pictures(capsys, table, tmp_path):
    out = tmp_path / "run"
    run(capsys, "train", table, *QUICK, "--no-figures", "--out", out)
    code, shown, _ = run(capsys, "evaluate", out, "--nll-samples", "0", "--data", table)
    assert code == 0
    assert "pictures" not in shown
    assert not (out / "figures").exists()


def test_runs_of_a_comparison_draw_nothing(tmp_path):
    job = Job("one", TrainConfig(data="sine"), tmp_path / "runs" / "one")
    command = job.next_command()
    settings = json.loads((tmp_path / "runs" / "one.json").read_text())
    assert command[:2] == ["train", "--config"]
    assert settings["figures"] is False
    (job.out / "model").mkdir(parents=True)
    assert "--no-figures" in job.next_command()


def record(epoch):
    return TimedEpochRecord(epoch, epoch, 1e-3, 1.0, {}, None, seconds=1.0, cpu_seconds=1.0, samples=1)


def test_epochs_get_fewer_lines_as_they_become_many():
    pace = Pace(clock=lambda: 0.0)
    shown = [epoch for epoch in range(1, 1541) if pace.shows(record(epoch))]
    assert shown == [*range(1, 11), *range(20, 101, 10), *range(200, 1001, 100)]
    assert pace.skipped.epoch == 1540
    assert pace.shows(record(2000))
    assert pace.skipped is None


def test_slow_epochs_get_a_line_each():
    seconds = iter(range(0, 10_000, 4))
    pace = Pace(clock=lambda: next(seconds))
    shown = [epoch for epoch in range(1, 100) if pace.shows(record(epoch))]
    assert max(np.diff(shown)) <= 4
