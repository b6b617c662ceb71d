"""Who misses whom, on a clock that the test sets."""

from collections import Counter

import pytest

from wiseale.processes import heartbeat
from wiseale.processes.heartbeat import LOST_SECONDS, Heartbeat
from wiseale.processes.world import World


class Store:
    """Counters as torch's store has them."""

    def __init__(self):
        self.values = Counter()

    def add(self, key, value):
        self.values[key] += value
        return self.values[key]


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: now[0])
    return now


def ranks(size):
    store = Store()
    return [Heartbeat(World(rank, size), store) for rank in range(size)]


def test_ranks_that_beat_are_not_missed(clock):
    hearts = ranks(4)
    for _ in range(50):
        clock[0] += LOST_SECONDS / 3
        assert [heart.beat() for heart in hearts] == [None] * 4


@pytest.mark.parametrize("silent", [0, 2])
def test_every_rank_learns_who_is_missed(clock, silent):
    hearts = ranks(4)
    for heart in hearts:
        heart.beat()
    others = [heart for rank, heart in enumerate(hearts) if rank != silent]
    for _ in range(4):
        clock[0] += LOST_SECONDS / 3
        found = [heart.beat() for heart in others]
    assert found == [silent] * 3


def test_a_rank_that_has_done_its_part_is_not_missed(clock):
    hearts = ranks(3)
    for heart in hearts:
        heart.beat()
    hearts[2].leave()
    for _ in range(6):
        clock[0] += LOST_SECONDS / 2
        assert [heart.beat() for heart in hearts[:2]] == [None, None]
