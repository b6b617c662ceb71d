"""Two ranks that evaluate a run: the file of one process, byte for byte; a rank that dies; how work is divided."""

import os
import signal
import sys

import pytest
import torch
from tests.processes.processes import finish, rank_ids, wiseale

from wiseale.processes.shared_tasks import Task, assigned, results

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A short run on waves, whose factors are known: all parts of the evaluation apply but those of images."""
    path = tmp_path_factory.mktemp("evaluated") / "run"
    arguments = ("--network", "mlp:hidden=32", "--max-epochs", "1", "--threads", "1", "--no-figures")
    finish(wiseale("train", "sine:n=2000,n_test=2500", *arguments, "--out", path))
    return path


@linux
@pytest.mark.long
def test_the_file_of_two_ranks_is_that_of_one_process(run):
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    asked = ("evaluate", run, "--nll-samples", "7", "--no-figures")
    finish(wiseale(*asked, env=environment))
    alone = (run / "evaluation.json").read_bytes()
    (run / "evaluation.json").unlink()
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    output = finish(wiseale(*asked, launcher=launcher, env=environment))
    assert (run / "evaluation.json").read_bytes() == alone
    assert output.count("2,500 rows (test)") == 1


@linux
@pytest.mark.long
def test_a_rank_that_is_killed_ends_the_others_with_one_line(run):
    (run / "evaluation.json").unlink(missing_ok=True)
    with wiseale("evaluate", run, "--nll-samples", 100_000, "--no-figures", "--processes", 2) as process:
        while "likelihood" not in (line := process.stdout.readline()):  # an hour of work begins
            assert line
        os.kill(rank_ids(process)[1], signal.SIGKILL)
        assert process.stdout.read().splitlines() == [
            "wiseale: error: rank 1 of 2 was killed by SIGKILL, so the others were stopped: "
            "start `wiseale evaluate` again: nothing was written"
        ]
        assert process.wait(timeout=60) == 2
    assert not (run / "evaluation.json").exists()


def test_one_process_computes_every_task_in_order():
    tasks = [Task(lambda n=n: (torch.tensor(n), torch.arange(n))) for n in range(3)]
    assert [(int(first), second.tolist()) for first, second in results(tasks)] == [(0, []), (1, [0]), (2, [0, 1])]


@pytest.mark.parametrize(
    ("costs", "ranks", "expected"),
    [
        ([1, 1, 1, 1, 1], 2, [0, 1, 0, 1, 0]),
        ([1, 1, 1, *[0.25] * 4], 2, [0, 1, 0, 1, 1, 1, 1]),  # 2 and 2
        ([3, 1], 3, [0, 1]),
    ],
)
def test_a_task_goes_to_the_rank_with_the_least_to_do(costs, ranks, expected):
    assert assigned(costs, ranks) == expected
