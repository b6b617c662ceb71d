"""A run that is killed at any moment and resumed ends byte for byte as one that never was."""

import os
import random
import signal
import sys
import time

import pytest
from tests.processes.processes import at_the_end, content, finish, newest_step, wiseale

from wiseale.runs.directory import RunDirectory

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform == "win32", reason="kills and stops processes by POSIX signals"),
]

ARGUMENTS = [
    "sine:n=2000,n_test=10",
    *("--objective", "wise_ale", "--network", "mlp:hidden=48", "--batch-size", "16", "--max-epochs", "8"),
    *("--prior-warmup", "1", "--patience", "6", "--lr-schedule", "cosine", "--seed", "5"),
    *("--checkpoint-every", "30", "--threads", "1", "--no-figures"),
]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    run = tmp_path_factory.mktemp("whole") / "run"
    finish(wiseale("train", *ARGUMENTS, "--out", run))
    return run


@pytest.mark.parametrize("seed", [0, 1])
def test_killed_at_random_moments(uninterrupted, tmp_path, seed):
    moments = random.Random(seed)
    run = tmp_path / "run"
    process = wiseale("train", *ARGUMENTS, "--out", run)
    for kill in range(4):
        after = newest_step(run) + moments.choice([0, 1, 60])
        while process.poll() is None and (newest_step(run) <= after or (kill == 0 and not run.exists())):
            time.sleep(0.002)
            if kill == 0 and seed == 1 and (run / "config.json").exists():
                break  # before the first checkpoint
        time.sleep(moments.uniform(0, 0.03))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        process = wiseale("resume", run)
    finish(process)
    assert at_the_end(run) == at_the_end(uninterrupted)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_save_and_end_with_their_code(uninterrupted, tmp_path, number, code):
    run = tmp_path / "run"
    process = wiseale("train", *ARGUMENTS, "--out", run)
    while newest_step(run) < 60:
        time.sleep(0.002)
        assert process.poll() is None
    process.send_signal(number)
    output = finish(process, code)
    assert "wiseale resume" in output
    interrupted_at = newest_step(run)
    finish(wiseale("resume", run))
    assert interrupted_at < newest_step(run) == newest_step(uninterrupted)
    assert at_the_end(run) == at_the_end(uninterrupted)


def test_a_damaged_newest_checkpoint_is_passed_over(uninterrupted, tmp_path):
    run = tmp_path / "run"
    process = wiseale("train", *ARGUMENTS, "--out", run)
    while newest_step(run) < 90:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    weights = run / "checkpoints" / f"{newest_step(run):06d}" / "weights.safetensors"
    damaged = bytearray(weights.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    weights.write_bytes(damaged)
    output = finish(wiseale("resume", run))
    assert "is damaged" in output
    assert at_the_end(run) == at_the_end(uninterrupted)


def test_resuming_a_finished_run_says_so(uninterrupted):
    before = content(uninterrupted)
    assert "finished: nothing to resume" in finish(wiseale("resume", uninterrupted))
    assert content(uninterrupted) == before


def test_repeating_a_run_from_its_config_gives_the_same_bytes(uninterrupted, tmp_path):
    finish(wiseale("train", "--config", uninterrupted / "config.json", "--out", tmp_path / "again"))
    assert at_the_end(tmp_path / "again") == at_the_end(uninterrupted)


def test_one_process_per_run(uninterrupted, tmp_path):
    run = tmp_path / "run"
    process = wiseale("train", *ARGUMENTS, "--out", run)
    while newest_step(run) < 30:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        assert "is in use by another process" in finish(wiseale("resume", run), code=2)
    finally:
        os.kill(process.pid, signal.SIGCONT)
        process.kill()
        process.communicate()
    with RunDirectory.open(run).locked():
        pass  # a kill leaves no lock behind
