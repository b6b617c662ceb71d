"""Comparisons: intervals, isolation of failures, and going on after a kill."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from wiseale.config import TrainConfig
from wiseale.data import load_dataset
from wiseale.errors import DataError, RunError
from wiseale.evaluation.encoded import encode_run
from wiseale.experiments.comparison import Comparison, System, estimate, prepare_comparison, read_comparison, summarize
from wiseale.experiments.jobs import Job, run_jobs
from wiseale.processes.engines import local_engine
from wiseale.runs.run import Run

QUICK = {"network": "mlp:hidden=8", "max_epochs": 2, "batch_size": 16, "threads": 1}
ARGUMENTS = [
    *("sine:n=150,n_test=80", "--objectives", "wise_ale:prior_weight=1/64", "--seeds", "2"),
    *("--network", "mlp:hidden=8", "--max-epochs", "2", "--batch-size", "16", "--evaluate-rows", "80"),
]


@pytest.mark.parametrize("n", [2, 3, 5, 9, 12, 40])
def test_intervals_are_students(n):
    values = np.random.default_rng(n).normal(3, 2, n)
    found = estimate(list(values))
    low, high = stats.t.interval(0.95, n - 1, values.mean(), stats.sem(values))
    assert (found.mean, found.half_width) == pytest.approx(((low + high) / 2, (high - low) / 2), rel=1e-9)


@pytest.mark.parametrize("values", [[2.0], [2.0, 2.0, 2.0]])
def test_one_seed_or_equal_values_have_no_interval(values):
    found = estimate(values)
    assert (found.mean, found.half_width, found.n) == (2.0, None, len(values))


def comparison(out: Path, **changes) -> Comparison:
    base = TrainConfig(data="sine:n=150,n_test=80", **QUICK | changes)
    systems = (System("AEVB", "aevb"), System("WiSE-ALE", "wise_ale"))
    return Comparison(base, systems, seeds=1, out=out, evaluate_rows=80)


@pytest.mark.long
def test_a_failure_is_reported_and_the_rest_goes_on(tmp_path):
    made = comparison(tmp_path / "c")
    broken = Job("broken", TrainConfig(data="sine:n=150,n_test=80", **QUICK, lr=1e30), tmp_path / "broken")
    states = []
    with local_engine(2) as engine:
        failures = run_jobs([broken, made.jobs()[0]], engine, lambda jobs: states.append(dict(jobs)))
    assert [failure.job.name for failure in failures] == ["broken"]
    assert "diverged" in failures[0].reason
    assert states[-1][made.jobs()[0]] == "done"
    assert len(made.results()) == 1


def test_other_settings_in_the_same_place_are_refused(tmp_path):
    comparison(tmp_path / "c").keep_request()
    comparison(tmp_path / "c").keep_request()
    assert read_comparison(tmp_path / "c") == comparison(tmp_path / "c")
    comparison(tmp_path / "c", data_root="/elsewhere", device="cpu").keep_request()  # what only the machine has
    with pytest.raises(RunError, match=r"max_epochs is 2, not 3"):
        comparison(tmp_path / "c", max_epochs=3).keep_request()
    with pytest.raises(RunError, match=r"\(evaluate_rows is 80, not 40\)"):  # a mean over both would mix them
        replace(comparison(tmp_path / "c"), evaluate_rows=40).keep_request()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="not empty"):
        comparison(tmp_path / "mine").keep_request()


def test_a_second_call_adds_systems_and_seeds(tmp_path):
    first = replace(comparison(tmp_path / "c"), seeds=3)
    assert first.with_kept() == first
    first.keep_request()
    aevb, ours = first.systems
    other = System("WAE", "wae_mmd")
    second = replace(first, systems=(other, ours), seeds=1).with_kept()
    assert (second.systems, second.seeds) == ((aevb, ours, other), 3)
    second.keep_request()
    assert replace(first, seeds=5).with_kept() == replace(second, seeds=5)


def compare(out: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "wiseale", "compare", *ARGUMENTS, "--out", str(out)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def tables(out: Path) -> dict[str, list[str]]:
    """The lines of every CSV table, without those that contain times."""
    return {
        path.name: [line for line in path.read_text().splitlines() if "seconds" not in line]
        for path in (out / "tables").glob("*.csv")
    }


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="kills a process group")
def test_killed_in_the_middle_and_run_again_gives_the_same_tables(tmp_path):
    whole = compare(tmp_path / "whole")
    output, _ = whole.communicate(timeout=300)
    assert whole.returncode == 0, output

    killed = compare(tmp_path / "killed")
    first = tmp_path / "killed" / "runs" / "wise_ale-prior_weight-1-over-64" / "seed-0" / "evaluation.json"
    while not first.exists():
        time.sleep(0.02)
        assert killed.poll() is None
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    stamp = first.stat().st_mtime_ns
    again = compare(tmp_path / "killed")
    output, _ = again.communicate(timeout=300)
    assert again.returncode == 0, output
    assert first.stat().st_mtime_ns == stamp
    assert tables(tmp_path / "killed") == tables(tmp_path / "whole") != {}

    results = read_comparison(tmp_path / "whole").results()
    mse = [json.loads((result.path / "evaluation.json").read_text())["measures"]["mse"] for result in results]
    (summary,) = summarize(results).values()
    assert (summary["mse"].n, summary["mse"].mean) == (2, pytest.approx(np.mean(mse)))
    page = (tmp_path / "whole" / "report.html").read_text()
    assert "http" not in page.replace("http-equiv", "")
    assert "<script" not in page


@pytest.mark.long
def test_the_data_is_parsed_once(tmp_path):
    """The file is unreadable from the moment it has been parsed: runs and figures must not open it again."""
    table = tmp_path / "table.csv"
    rows = np.random.default_rng(0).normal(size=(60, 3))
    table.write_text("a,b,kind\n" + "".join(f"{a},{b},{'xy'[int(c > 0)]}\n" for a, b, c in rows))
    data = f"{table}:labels=kind"
    expected = load_dataset(data)
    base = TrainConfig(data=data, **QUICK, held_out=0.5)
    made, dataset = prepare_comparison(base, ["aevb"], 1, tmp_path / "c", 30)
    with made.shared_data(dataset):
        table.write_text("not,a\ntable")
        with local_engine(1) as engine:
            assert made.run(engine, lambda jobs: None) == []
        again = load_dataset(data)
        encoded = encode_run(Run.open(made.results()[0].path))
    np.testing.assert_array_equal(again.train.x, expected.train.x)
    np.testing.assert_array_equal(again.train.factors["kind"], expected.train.factors["kind"])
    assert (again.space, again.preset) == (expected.space, expected.preset)
    assert len(encoded.rows) == 30
    record = made.results()[0].directory.read_record()
    assert record.settings.data == data
    assert record.facts.data_fingerprint == expected.fingerprint
    assert not (tmp_path / "c" / ".data").exists()
    with pytest.raises(DataError):
        load_dataset(data)
