"""One run on three machines, which are network namespaces of this one: torchrun meets across them."""

import time
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file
from tests.processes import hosts as machines
from tests.processes.processes import at_the_end, newest_step
from tests.processes.rank_gradients import train

from wiseale.cli import main
from wiseale.processes.group import EXCHANGE_SECONDS
from wiseale.processes.world import ALONE

REASON = machines.problem()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
]

ARGUMENTS = [
    *("sine:n=600,n_test=10", "--objective", "wise_ale", "--network", "mlp:hidden=32", "--batch-size", "12"),
    *("--seed", "5", "--checkpoint-every", "20", "--threads", "1", "--no-figures"),
]
TRAIN = ("-m", "wiseale", "train", *ARGUMENTS)


@pytest.fixture
def hosts():
    with machines.connected(3) as connected:
        yield connected


def finish(processes, code=0):
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [code] * len(processes), "\n".join(outputs)
    return outputs


def end(processes):
    """Kill what is left; torchrun's ranks are in sessions of their own."""
    for process in processes:
        if process.poll() is None:
            for one in (*psutil.Process(process.pid).children(recursive=True), process):
                one.kill()
        process.communicate()


def test_the_gradient_is_that_of_one_process(hosts, tmp_path):
    script = Path(__file__).with_name("rank_gradients.py")
    finish([hosts.torchrun(host, script, tmp_path, "wise_ale", "12") for host in range(3)])
    expected = train("wise_ale", ALONE, 12)
    for rank in range(3):
        found = load_file(tmp_path / f"{rank}.safetensors")
        gradients = [name for name in found if "|gradient" in name]
        assert gradients
        for name in gradients:
            torch.testing.assert_close(found[name], expected[name], rtol=1e-6, atol=1e-9)


def test_a_rank_that_is_killed_is_restarted_and_the_run_ends_as_if_it_had_not_been(hosts, tmp_path, capsys):
    """The weights are those of one process up to rounding; the bytes are those of the undisturbed machines."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finish([hosts.torchrun(host, *TRAIN, "--max-epochs", 8, "--out", whole) for host in range(3)])

    ranks = [hosts.torchrun(host, *TRAIN, "--max-epochs", 8, "--out", killed, restarts=2) for host in range(3)]
    try:
        while newest_step(killed) < 60:
            time.sleep(0.02)
            assert all(rank.poll() is None for rank in ranks)
        victims = [one for one in psutil.Process(ranks[2].pid).children(recursive=True) if "wiseale" in one.cmdline()]
        victims[-1].kill()
        assert newest_step(killed) < 8 * (570 // 12)
        finish(ranks)
    finally:
        end(ranks)
    assert at_the_end(killed) == at_the_end(whole)

    with pytest.raises(SystemExit):
        main(["train", *ARGUMENTS, "--max-epochs", "8", "--out", str(tmp_path / "alone")])
    capsys.readouterr()
    alone, together = (load_file(run / "model" / "model.safetensors") for run in (tmp_path / "alone", whole))
    for name, weights in alone.items():
        torch.testing.assert_close(together[name], weights, rtol=1e-3, atol=1e-4)


def test_a_cut_cable_ends_the_others_and_a_restart_resumes_exactly(hosts, tmp_path):
    """Collectives wait for EXCHANGE_SECONDS; the whole run's bytes are those of machines that stayed connected."""
    whole, run = tmp_path / "whole", tmp_path / "run"
    ranks = [hosts.torchrun(host, *TRAIN, "--max-epochs", 60, "--out", run) for host in range(3)]
    try:
        while newest_step(run) < 20:
            time.sleep(0.05)
            assert all(rank.poll() is None for rank in ranks)
        workers = [
            next(one for one in psutil.Process(rank.pid).children(recursive=True) if "wiseale" in one.cmdline())
            for rank in ranks[:2]
        ]
        hosts.cut(2)
        start = time.monotonic()
        psutil.wait_procs(workers, 2 * EXCHANGE_SECONDS)
        assert time.monotonic() - start < EXCHANGE_SECONDS + 30
        outputs = [rank.communicate(timeout=120)[0] for rank in ranks[:2]]
        lines = [[x for x in output.splitlines() if x.startswith("wiseale: error: ")] for output in outputs]
        assert {len(of_machine) for of_machine in lines} in ({1}, {0, 1})  # one that cannot ask the store reports too
        for line in (line for of_machine in lines for line in of_machine):
            assert f"lost the others: one was cut off or has stopped {EXCHANGE_SECONDS} s ago" in line
            assert "wiseale resume" in line
    finally:
        end(ranks)
    assert 20 <= newest_step(run) < 60 * (570 // 12)

    hosts.connect_again(2)
    finish([hosts.torchrun(host, "-m", "wiseale", "resume", run) for host in range(3)])
    finish([hosts.torchrun(host, *TRAIN, "--max-epochs", 60, "--out", whole) for host in range(3)])
    assert at_the_end(run) == at_the_end(whole)
