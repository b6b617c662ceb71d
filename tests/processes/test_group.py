"""An error that several ranks meet is reported by one of them."""

import threading

import torch.distributed as dist

from wiseale.processes.group import Group
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
