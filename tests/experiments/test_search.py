"""Hyper-parameter search: the trials are ordinary runs, the best is the best of them, and a killed search continues."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.cli.commands import run

from wiseale.config import TrainConfig
from wiseale.data import load_dataset
from wiseale.errors import WiseAleError
from wiseale.experiments.search import read_search
from wiseale.experiments.space import default_space, parse_space, settings_of_trial
from wiseale.processes.world import ALONE
from wiseale.runs.directory import RunDirectory
from wiseale.training import loop
from wiseale.training.setup import Work, take_weights

SETTINGS = ("--network", "mlp:hidden=8", "--max-epochs", "3", "--space", "lr=1e-4..1e-1", "batch_size=8|16")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.npy"
    generator = np.random.default_rng(0)
    np.save(path, generator.normal(size=(200, 2)) @ generator.normal(size=(2, 6)))
    return path


def test_the_space_is_read_as_written():
    lr, batch, weight = parse_space(["lr=1e-4..1e-2", "batch-size=32|64", "objective.prior_weight=1/4..4"])
    assert (lr.low, lr.high, batch.choices, weight.name) == ("1e-4", "1e-2", ("32", "64"), "objective.prior_weight")
    base = TrainConfig(data="sine", objective="wise_ale:estimator=mc")
    made = settings_of_trial(base, {"lr": "0.01", "objective.prior_weight": "2", "batch_size": "32"})
    assert (made.lr, made.batch_size, made.objective) == (0.01, 32, "wise_ale:estimator=mc,prior_weight=2")
    assert [varied.name for varied in default_space(["lr"])] == ["batch_size", "latent_dim"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("lr", "is not of the form"),
        ("lr=1..0.1", "from the smaller number"),
        ("lrr=1e-3..1", "did you mean 'lr'"),
        ("seed=1|2", "cannot be searched"),
        ("unseen=error|other", "cannot be searched"),
        ("init_from=a|b", "cannot be searched"),
        ("lr.decay=1..2", "cannot be searched"),
    ],
)
def test_a_space_that_cannot_be_searched_is_refused(wrong, told):
    with pytest.raises(WiseAleError, match=told):
        parse_space([wrong])


def test_trials_are_runs_and_the_best_is_theirs(table, tmp_path, capsys):
    out = tmp_path / "search"
    code, told, _ = run(capsys, "search", table, *SETTINGS, "--trials", 8, "--out", out)
    assert code == 0
    search = read_search(out)
    trials = search.trials()
    assert len(trials) == 8
    finished = [trial for trial in trials if trial.state.name == "COMPLETE"]
    assert len(finished) >= 5  # none is stopped early before five are whole
    for trial in finished:
        held = RunDirectory(search.run_path(trial.number))
        settings = held.read_record().settings
        assert settings.lr == trial.params["lr"]
        assert settings.batch_size == int(trial.params["batch_size"])
        assert held.read_metrics()[-1].held_out["elbo"] == trial.value
    for trial in (trial for trial in trials if trial.state.name == "PRUNED"):  # no model, and behind the median
        held = RunDirectory(search.run_path(trial.number))
        assert not held.finished
        epoch = len(held.read_metrics())
        earlier = [t.intermediate_values[epoch] for t in finished if t.number < trial.number]
        assert max(trial.intermediate_values.values()) < np.median(earlier)
    best = max(finished, key=lambda trial: trial.value)
    assert json.loads((out / "best.json").read_text())["lr"] == best.params["lr"]
    assert f"best: trial {best.number}" in told
    with (out / "tables" / "trials.csv").open(newline="") as file:
        assert [row["state"] for row in csv.DictReader(file)].count("finished") == len(finished)
    assert (out / "report.html").is_file()
    # the best settings train to the same numbers again
    assert run(capsys, "train", "--config", out / "best.json", "--out", tmp_path / "again")[0] == 0
    again = RunDirectory(tmp_path / "again").read_metrics()
    assert again == RunDirectory(search.run_path(best.number)).read_metrics()


@pytest.mark.parametrize("start", ["pca", "none"])
def test_with_early_stopping_a_trial_has_the_value_of_the_weights_it_keeps(start, table, tmp_path, capsys):
    """Epochs in which the prior's weight rises are not kept; the start is, if nothing is better. Measured anew."""
    out = tmp_path / "search"
    settings = ("--network", f"mlp:hidden=8,start={start}", "--max-epochs", 14, "--patience", 3, "--prior-warmup", 4)
    space = ("--space", "lr=1e-3..1", "--measure", "reconstruction")
    assert run(capsys, "search", table, *settings, *space, "--trials", 5, "--out", out)[0] == 0
    search, kept_start = read_search(out), []
    for trial in search.trials():
        assert trial.state.name == "COMPLETE"
        made = RunDirectory(search.run_path(trial.number))
        chosen, dataset = made.read_record().settings, load_dataset(str(table))
        work = Work.prepare(chosen, dataset)
        take_weights(work.learner.model, str(made.path))
        assert trial.value == pytest.approx(measure_held_out(work)["reconstruction"], rel=1e-5)
        kept_start.append(trial.value not in [epoch.held_out["reconstruction"] for epoch in made.read_metrics()])
    assert all(kept_start) == (start == "pca")  # the rows have two factors: PCA cannot be improved


def measure_held_out(work):
    return loop._held_out_terms(work.learner, work.held_out, work.settings, ALONE)


@pytest.mark.long
def test_a_killed_search_continues_with_the_trials_it_would_have_made(table, tmp_path, capsys):
    settings = ("search", table, *SETTINGS[:-3], "--checkpoint-every", 5, "--batch-size", 8, "--space", SETTINGS[-2])
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run(capsys, *settings, "--trials", 3, "--out", whole)[0] == 0
    command = [sys.executable, "-m", "wiseale", *map(str, settings), "--trials", "3", "--out", str(killed)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not (killed / "trials" / "0001" / "run" / "config.json").exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert run(capsys, *settings, "--trials", 3, "--out", killed)[0] == 0
    expected, found = ([(t.state, t.value, t.params) for t in read_search(out).trials()] for out in (whole, killed))
    assert found == expected
    other = ("search", table, "--max-epochs", 3, "--space", "lr=1e-4..1e-2", "--out", killed)
    assert "holds a search with other settings" in run(capsys, *other)[2]


def test_what_cannot_work_is_refused_before_the_first_trial(table, tmp_path, capsys, monkeypatch):
    out = tmp_path / "search"
    for wrong, told in {
        ("--measure", "elbo", "--objective", "wae_mmd"): "has a deterministic encoder and no ELBO",
        ("--lr", "1e-3", "--space", "lr=1e-4..1e-2"): "--space searches lr, which is also given",
        ("--held-out", "0"): "--held-out must be above 0",
        ("--space", "objective.weight=1..2"): "weight",
    }.items():
        code, _, error = run(capsys, "search", table, *wrong, "--out", out)
        assert (code, error.count("\n")) == (2, 1), error
        assert told in error
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "pip install 'wiseale[search]'" in run(capsys, "search", table, "--out", out)[2]
    assert not out.exists()
