"""Ranks that are late, silent or lost, and an error that several ranks meet: one of them reports it."""

import os
import subprocess
import sys
import threading
import time
from contextlib import nullcontext

import pytest
import torch.distributed as dist

from wiseale.errors import RunError
from wiseale.platform.machine import loopback_interface
from wiseale.processes.group import Group, _connect
from wiseale.processes.world import STORE, World

RANK = """if True:
    import os, sys, time
    import torch
    import torch.distributed as dist
    from wiseale.errors import WiseAleError
    from wiseale.processes import group
    from wiseale.processes.world import from_environment

    group.EXCHANGE_SECONDS = 4
    world, loading, stopped = from_environment(), float(sys.argv[1]), float(sys.argv[2])
    try:
        with group.process_group(world, "cpu") as ranks:
            with ranks.one_per_machine_first():
                time.sleep(loading * world.rank)
            time.sleep(stopped * world.rank)
            ones = torch.ones(())
            dist.all_reduce(ones)
            print(int(ones))
    except WiseAleError as error:
        print(type(error).__name__, error)
    sys.stdout.flush()
    os._exit(0)
"""


def two_ranks(folder, loading, stopped):
    """What each of two ranks prints; rank 1 takes so many seconds to load, and then stops for so many."""
    world = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", STORE: str(folder / "store")}
    if interface := loopback_interface():
        world["GLOO_SOCKET_IFNAME"] = interface
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(loading), str(stopped)],
            env=os.environ | world | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdin=subprocess.PIPE,  # ranks end when it closes
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [rank.stdout.read().strip() for rank in ranks]
    for rank in ranks:
        rank.wait()
        rank.stdin.close()
        rank.stdout.close()
    return outputs


@pytest.mark.long
def test_loading_may_take_longer_than_an_exchange(tmp_path):
    assert two_ranks(tmp_path, loading=9, stopped=0) == ["2", "2"]


@pytest.mark.long
def test_a_rank_that_stops_ends_the_others_after_the_time_of_an_exchange(tmp_path):
    first, second = two_ranks(tmp_path, loading=0, stopped=10)
    assert first.startswith("RunError rank 0 of 2 lost the others: one was cut off or has stopped 4 s ago")
    assert "wiseale resume" in first
    assert second.startswith("ReportedByAnotherRankError")


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


class LostStore:
    """A store whose owner has gone, or one that never answers because it cannot be reached."""

    def __init__(self, seconds):
        self.seconds = seconds

    def add(self, key, value):
        time.sleep(self.seconds)
        raise RuntimeError("Connection reset by peer")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("seconds", [0, 3600])
def test_without_a_store_the_first_rank_of_each_machine_reports(seconds, monkeypatch):
    monkeypatch.setattr("wiseale.processes.group._STORE_SECONDS", 0.2)
    monkeypatch.setattr("wiseale.processes.group._RANK_0_HEAD_START_SECONDS", 0)
    worlds = [World(rank, 4, rank % 2, 2) for rank in range(4)]
    assert [Group(world, LostStore(seconds)).should_report() for world in worlds] == [True, False, True, False]


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
