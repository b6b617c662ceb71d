"""A run that is killed at any moment and resumed ends byte for byte as one that never was."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wiseale.training.run_directory import RunDirectory

ARGUMENTS = [
    "sine:n=1500,n_test=10",
    *("--objective", "wise_ale", "--network", "mlp:hidden=48", "--batch-size", "16", "--max-epochs", "8"),
    *("--prior-warmup", "1", "--patience", "6", "--lr-schedule", "cosine", "--seed", "5"),
    *("--checkpoint-every", "30", "--threads", "1"),
]


def wiseale(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "wiseale", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )


def finish(process, code=0):
    output, _ = process.communicate(timeout=120)
    assert process.returncode == code, output
    return output


def newest_step(run: Path) -> int:
    return max((int(path.name) for path in (run / "checkpoints").glob("[0-9]*")), default=-1)


def content(run: Path) -> dict[str, bytes]:
    """Every byte of a run but the times, the environment and its place."""
    files = [path for path in sorted(run.rglob("*")) if path.is_file() and path.name not in ("timing.jsonl",)]
    return {str(path.relative_to(run)): path.read_bytes() for path in files}


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
    assert content(run) == content(uninterrupted)


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


def at_the_end(run: Path) -> dict[str, bytes]:
    """What a run leaves, without the last checkpoint but one: an interruption is one more occasion to save."""
    last = f"checkpoints/{newest_step(run):06d}/"
    return {name: data for name, data in content(run).items() if "checkpoints" not in name or name.startswith(last)}


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
    assert content(run) == content(uninterrupted)


def test_resuming_a_finished_run_says_so(uninterrupted):
    before = content(uninterrupted)
    assert "finished: nothing to resume" in finish(wiseale("resume", uninterrupted))
    assert content(uninterrupted) == before


def test_repeating_a_run_from_its_config_gives_the_same_bytes(uninterrupted, tmp_path):
    finish(wiseale("train", "--config", uninterrupted / "config.json", "--out", tmp_path / "again"))
    assert content(tmp_path / "again") == content(uninterrupted)


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
