"""An error that several ranks meet is reported by one of them."""

import threading
from contextlib import nullcontext

import pytest
import torch.distributed as dist

from wiseale.errors import RunError
from wiseale.processes.group import Group, _connect
from wiseale.processes.world import World


def test_rank_0_reports_an_error_that_all_ranks_meet():
    store = dist.HashStore()
    found = {}

    def ask(rank):
        found[rank] = Group(World(rank, 3, rank, 3), store).should_report()

    threads = [threading.Thread(target=ask, args=(rank,)) for rank in (2, 1, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: True, 1: False, 2: False}


def test_another_rank_reports_what_rank_0_does_not_meet():
    assert Group(World(1, 2, 1, 2), dist.HashStore()).should_report()
    assert Group(World()).should_report()


@pytest.mark.parametrize(
    ("device", "told"), [("cuda:1", "give --device cuda, and each"), ("mps", "cpu or cuda, not on mps")]
)
def test_devices_that_several_processes_cannot_share(device, told, monkeypatch):
    monkeypatch.setattr("wiseale.processes.group.report_once", lambda world: nullcontext())
    with pytest.raises(RunError, match=told):
        _connect(World(0, 2, 0, 2), device)
