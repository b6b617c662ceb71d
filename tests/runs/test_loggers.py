"""What each logger writes, read back by the program it is for: the numbers of metrics.jsonl, each step once."""

import csv
import json
import shutil
import sys
import time

import numpy as np
import pytest

from wiseale import registry
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


@pytest.fixture(params=registry.names("logger"))
def logger(request, monkeypatch):
    quiet(monkeypatch)
    return request.param


def quiet(monkeypatch):
    """The variables that loggers set, taken back after the test."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.npy"
    np.save(path, np.random.default_rng(0).normal(size=(40, 5)))
    return path


@pytest.fixture
def run(table, tmp_path, logger):
    out = tmp_path / "run"
    assert wiseale("train", table, *SETTINGS, "--logger", logger, "--out", out) == 0
    return RunDirectory.open(out)


def read_csv(run):
    found = {}
    with (run.path / "metrics.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            for name, value in line.items():
                found.setdefault(name, []).append((int(line["step"]), float(value), None))
    return found


def read_mlflow(run):
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=(run.path / "mlruns").as_uri())
    (kept,) = client.search_runs([client.get_experiment_by_name("wiseale").experiment_id])
    assert kept.info.status == "FINISHED"
    assert kept.data.params["latent_dim"] == "2"
    histories = {name: client.get_metric_history(kept.info.run_id, name) for name in kept.data.metrics}
    return {name: [(m.step, m.value, m.timestamp / 1000) for m in history] for name, history in histories.items()}


def read_tensorboard(run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(run.path / "tensorboard"))
    read.Reload()
    return {tag: [(e.step, e.value, e.wall_time) for e in read.Scalars(tag)] for tag in read.Tags()["scalars"]}


def leveldb_records(content):
    """Records of a LevelDB log, the format of .wandb files: blocks of 32 kB of chunks (checksum, length, type)."""
    position, record = 7, b""  # after the file's own header
    while position + 7 <= len(content):
        if (left := 32768 - position % 32768) < 7:
            position += left
            continue
        length, kind = int.from_bytes(content[position + 4 : position + 6], "little"), content[position + 6]
        record += content[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            yield record
            record = b""


def read_wandb(run):
    from wandb.proto.wandb_internal_pb2 import Record

    (path,) = (run.path / "wandb").glob("offline-run-*/run-*.wandb")
    found, settings = {}, {}
    for data in leveldb_records(path.read_bytes()):
        record = Record.FromString(data)
        settings |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
        row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for name, value in row.items():
            found.setdefault(name, []).append((record.history.step.num, value, row["_timestamp"]))
    assert settings["latent_dim"] == "2"
    return found


READERS = {"csv": read_csv, "mlflow": read_mlflow, "tensorboard": read_tensorboard, "wandb": read_wandb}


def assert_as_in_metrics(run, found):
    metrics = run.read_metrics()
    for part in ("train", "held_out"):
        for term in getattr(metrics[0], part):
            told = [(step, value) for step, value, _ in found[f"{part}/{term}"]]
            expected = [(record.step, pytest.approx(getattr(record, part)[term], rel=1e-6)) for record in metrics]
            assert told == expected, term
    assert [value for _, value, _ in found["lr"]] == pytest.approx([record.lr for record in metrics])
    assert [value for _, value, _ in found["epoch"]] == [1, 2, 3, 4]
    assert len(found["samples_per_second"]) == len(metrics)


def test_a_run_and_its_resumption_are_logged_as_in_the_metrics(run, logger):
    """After resumption every step is there once, at rising times."""
    whole = run.read_metrics()
    assert len(whole) == 4
    assert_as_in_metrics(run, READERS[logger](run))
    shutil.rmtree(run.model)
    newest = max(run.checkpoints.iterdir(), key=lambda path: int(path.name))
    shutil.rmtree(newest)  # back to step 15 of 20: the last epoch is done again
    if logger == "tensorboard":
        (run.path / "tensorboard" / "events.out.tfevents.1.killed").write_bytes(b"half an ev")
    before = time.time()
    assert wiseale("resume", run.path) == 0
    assert run.read_metrics() == whole
    found = READERS[logger](run)
    assert_as_in_metrics(run, found)
    times = [at for _, _, at in found["train/loss"] if at is not None]
    assert times == sorted(times)
    if logger in ("tensorboard", "wandb"):  # MLflow keeps the first epoch 4, which was the same
        assert times[0] < times[-1] > before


@pytest.mark.parametrize("logger", registry.names("logger"))
def test_without_the_package_nothing_is_begun(monkeypatch, tmp_path, capsys, logger):
    from wiseale import config

    needs = config.build("logger", logger)
    if needs.package is None:
        return
    monkeypatch.setitem(sys.modules, needs.package, None)
    out = tmp_path / "run"
    assert wiseale("train", "sine:n=100,n_test=10", "--logger", logger, "--out", out) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"--logger {logger} needs a package that is missing: pip install 'wiseale[{needs.extra}]'" in told
    assert not out.exists()
    assert wiseale("reproduce", "sine", "--scale", "smoke", "--logger", logger, "--out", out) == 2
    assert f"wiseale[{needs.extra}]" in capsys.readouterr().err
    assert not out.exists()


def test_a_logger_that_does_not_exist_is_refused_with_the_nearest(table, tmp_path, capsys):
    assert wiseale("train", table, *SETTINGS, "--logger", "tensorbord", "--out", tmp_path / "run") == 2
    assert "unknown logger 'tensorbord': did you mean 'tensorboard'?" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_mlflow_logs_to_the_store_that_is_named(table, tmp_path, monkeypatch):
    quiet(monkeypatch)
    from mlflow import MlflowClient

    store = (tmp_path / "store").as_uri()
    for seed in (0, 1):
        out = tmp_path / f"run-{seed}"
        asked = ("--seed", seed, "--logger", f"mlflow:experiment=sales,uri={store}")
        assert wiseale("train", table, *SETTINGS, *asked, "--out", out) == 0
        assert not (out / "mlruns").exists()
    client = MlflowClient(tracking_uri=store)
    kept = client.search_runs([client.get_experiment_by_name("sales").experiment_id])
    assert sorted(run.data.params["seed"] for run in kept) == ["0", "1"]
