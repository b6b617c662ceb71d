"""Two ranks from the command line: the same bytes however they are started and stopped; a rank that dies; refusals."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from tests.training.processes import at_the_end, finish, newest_step, wiseale

from wiseale.cli import main
from wiseale.cli.display import PlainDisplay
from wiseale.config import SettingError, TrainConfig
from wiseale.training.run import resume, start

ARGUMENTS = [
    "sine:n=1000,n_test=10",
    *("--objective", "wise_ale", "--network", "mlp:hidden=32", "--batch-size", "16", "--max-epochs", "8"),
    *("--prior-warmup", "1", "--patience", "6", "--lr-schedule", "cosine", "--seed", "5"),
    *("--checkpoint-every", "30", "--threads", "1"),
]
TWO = ("--processes", "2")


def rank_ids(process) -> list[int]:
    """Process ids of the ranks a command has started, in order."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()

    def rank(child):
        environment = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        return next(int(entry[5:]) for entry in environment if entry.startswith(b"RANK="))

    return sorted(map(int, children), key=rank)


def started(run, at_step):
    """A run of two ranks that has come to a step."""
    process = wiseale("train", *ARGUMENTS, *TWO, "--out", run)
    while newest_step(run) < at_step:
        time.sleep(0.01)
        assert process.poll() is None, process.stdout.read()
    return process


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Two ranks of torchrun."""
    run = tmp_path_factory.mktemp("whole") / "run"
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    output = finish(wiseale("train", *ARGUMENTS, "--out", run, launcher=launcher, env=environment))
    assert output.count("finished:") == 1
    assert "2 processes of 1 threads" in output
    return run


def test_interrupted_by_a_signal_to_one_rank_and_continued(uninterrupted, tmp_path):
    """The ranks agree on a step, save and end; resumed, the bytes are those of torchrun's uninterrupted ranks."""
    run = tmp_path / "run"
    process = started(run, 60)
    os.kill(rank_ids(process)[1], signal.SIGTERM)
    output = finish(process, 143)
    assert output.count("continue with: wiseale resume") == 1
    interrupted_at = newest_step(run)
    assert "2 processes of 1 threads" in finish(wiseale("resume", run))
    assert interrupted_at < newest_step(run) == newest_step(uninterrupted)
    assert at_the_end(run) == at_the_end(uninterrupted)


def test_a_killed_rank_ends_the_run_and_one_process_can_go_on(uninterrupted, tmp_path, capsys):
    run = tmp_path / "run"
    process = started(run, 30)
    ranks = rank_ids(process)
    os.kill(ranks[1], signal.SIGKILL)
    killed = time.monotonic()
    output = finish(process, 2)
    assert time.monotonic() - killed < 20
    assert [line for line in output.splitlines() if not line.startswith(("epoch", "wise_ale", "network"))] == [
        "wiseale: error: rank 1 of 2 was killed by SIGKILL, so the others were stopped: "
        "`wiseale resume` continues from the last checkpoint"
    ]
    assert not any(Path(f"/proc/{rank}").exists() for rank in ranks)
    resume(run, PlainDisplay())
    assert "started with 2 processes, continued with 1" in capsys.readouterr().out
    losses = [
        [json.loads(line)["held_out"]["loss"] for line in (each / "metrics.jsonl").read_text().splitlines()]
        for each in (run, uninterrupted)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)  # Adam's first steps magnify rounding


def refused(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments)])
    captured = capsys.readouterr()
    assert (ended.value.code, captured.out) == (2, "")
    return captured.err


def test_what_cannot_be_shared_is_refused_in_one_line(capsys, tmp_path):
    out = tmp_path / "run"
    message = refused(capsys, "train", *ARGUMENTS, "--processes", "3", "--out", out)
    assert message == "wiseale: error: --batch-size must divide evenly among the 3 processes, got 16\n"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    assert "exists" in refused(capsys, "train", *ARGUMENTS, *TWO, "--out", tmp_path / "full")
    assert not out.exists()


def test_a_number_of_processes_other_than_there_are(tmp_path):
    with pytest.raises(SettingError, match="processes is 2, and 1 were started"):
        start(TrainConfig(data="sine", processes=2), tmp_path / "run", PlainDisplay())
