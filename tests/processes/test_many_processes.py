"""Two ranks from the command line: the same bytes however they are started and stopped; a rank that dies; refusals."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.processes.processes import at_the_end, finish, newest_step, rank_ids, wiseale

from wiseale.cli import main
from wiseale.cli.display import RunDisplay
from wiseale.config import SettingError, TrainConfig
from wiseale.errors import ReportedByAnotherRankError
from wiseale.runs.train import resume, start

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

ARGUMENTS = [
    "sine:n=1000,n_test=10",
    *("--objective", "wise_ale", "--network", "mlp:hidden=32", "--batch-size", "16", "--max-epochs", "6"),
    *("--prior-warmup", "1", "--patience", "6", "--lr-schedule", "cosine", "--seed", "5"),
    *("--checkpoint-every", "20", "--threads", "1", "--no-figures"),
]
STEPS = 950 // 16  # an epoch


def wait_for(condition, process):
    """Until something holds of a command that is running."""
    while not condition():
        time.sleep(0.01)
        assert process.poll() is None, process.stdout.read()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Two ranks of torchrun."""
    run = tmp_path_factory.mktemp("whole") / "run"
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    output = finish(wiseale("train", *ARGUMENTS, "--out", run, launcher=launcher, env=environment))
    assert output.count("finished:") == 1
    assert "2 processes of 1 thread on" in output
    return run


def test_interrupted_continued_and_killed(uninterrupted, tmp_path, capsys):
    """As bytes, the metrics are those of torchrun's uninterrupted ranks; one process can go on where two were."""
    run = tmp_path / "run"
    process = wiseale("train", *ARGUMENTS, "--processes", 2, "--out", run)
    wait_for(lambda: newest_step(run) >= 40, process)
    os.kill(rank_ids(process)[1], signal.SIGTERM)
    assert finish(process, 143).count("continue with: wiseale resume") == 1
    assert newest_step(run) < 4 * STEPS

    process = wiseale("resume", run)
    wait_for(lambda: len(metrics(run)) >= 4, process)
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
    assert metrics(run) == metrics(uninterrupted)[: len(metrics(run))]

    resume(run, RunDisplay())
    assert "started with 2 processes, continued with 1" in capsys.readouterr().out
    losses = [[json.loads(line)["held_out"]["loss"] for line in metrics(each)] for each in (run, uninterrupted)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def metrics(run):
    """The lines of all epochs so far."""
    return (run / "metrics.jsonl").read_text().splitlines() if (run / "metrics.jsonl").exists() else []


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
    assert "exists" in refused(capsys, "train", *ARGUMENTS, "--processes", "2", "--out", tmp_path / "full")
    assert not out.exists()


def test_a_number_of_processes_other_than_there_are(tmp_path, monkeypatch):
    asked = TrainConfig(data="sine", processes=3)
    with pytest.raises(SettingError, match="processes is 3, and 1 were started"):
        start(asked, tmp_path / "run", RunDisplay())
    for rank, error in (("0", SettingError), ("1", ReportedByAnotherRankError)):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", "2")
        with pytest.raises(error):
            start(asked, tmp_path / "run", RunDisplay())


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["wise_ale", "aae:critic_width=64"])
def test_three_ranks_add_in_the_same_order_after_a_resumption(tmp_path, objective):
    """Sums of three numbers depend on their order, which DDP would change between its first step and the next."""
    arguments = [*ARGUMENTS, "--objective", objective, "--batch-size", "24", "--processes", "3"]
    finish(wiseale("train", *arguments, "--out", tmp_path / "whole"))
    run = tmp_path / "run"
    process = wiseale("train", *arguments, "--out", run)
    wait_for(lambda: newest_step(run) >= 40, process)
    process.send_signal(signal.SIGINT)
    finish(process, 130)
    finish(wiseale("resume", run))
    assert at_the_end(run) == at_the_end(tmp_path / "whole")
