"""Notice a rank that is not heard of any more: a cut cable, unlike a process that dies, closes no connection."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from wiseale.processes.world import RESUME, World

BEAT_SECONDS = 5.0
LOST_SECONDS = 40.0

_LOST = "lost"
_LEFT = 1 << 40  # added to the beat of a rank that has done its part


class Beats(Protocol):
    """Counters that all ranks see: a connection of its own to torch's store."""

    def add(self, key: str, value: int, /) -> int:
        """Add to a counter, which begins at 0; returns its value."""
        ...


class Heartbeat:
    """One rank's watch over the others.

    Every rank counts up its own beat. Rank 0 looks at all of them and says which rank it misses; the others look at
    rank 0 and at what it says, so the questions grow with the number of ranks, not with its square.
    """

    def __init__(self, world: World, beats: Beats) -> None:
        self._world = world
        self._beats = beats
        self._watched = range(1, world.size) if world.is_rank_0 else range(1)
        now = time.monotonic()
        self._seen = dict.fromkeys(self._watched, (0, now))
        self.answered = now

    def beat(self) -> int | None:
        """Count up, and look at the others; the rank that has not been heard of for too long, if any."""
        self._beats.add(_key(self._world.rank), 1)
        now = time.monotonic()
        for rank in self._watched:
            count = self._beats.add(_key(rank), 0)
            if count != self._seen[rank][0] or count >= _LEFT:
                self._seen[rank] = (count, now)
        lost = next((rank for rank, (_, when) in self._seen.items() if now - when > LOST_SECONDS), None)
        if lost is None:
            said = self._beats.add(_LOST, 0)  # its number + 1
            lost = said - 1 if said else None
        elif self._world.is_rank_0:
            self._beats.add(_LOST, lost + 1)
        self.answered = time.monotonic()
        return lost

    def leave(self) -> None:
        """Say that this rank has done its part and will not be heard of any more."""
        with suppress(RuntimeError):  # the store has left before
            self._beats.add(_key(self._world.rank), _LEFT)


def _key(rank: int) -> str:
    return f"beat/{rank}"


@contextmanager
def watch_others(world: World, beats: Beats, then: str = RESUME) -> Iterator[None]:
    """Inside, end this process with a line on standard error when another rank, or the store, is not heard of.

    The process is ended from a thread: one that waits for the lost rank inside a collective cannot be interrupted.
    """
    heart = Heartbeat(world, beats)
    ended = threading.Event()

    def pulse() -> None:
        with suppress(RuntimeError):  # the store has gone: the collectives fail as well, and say so
            while not ended.wait(BEAT_SECONDS):
                if (lost := heart.beat()) is not None and not ended.is_set():
                    _end(world, f"rank {lost} of {world.size}", then)

    def guard() -> None:  # a question to a store that cannot be reached is never answered
        while not ended.wait(1.0):
            if time.monotonic() - heart.answered > LOST_SECONDS and beating.is_alive():
                _end(world, f"the machine of rank 0 ({os.environ.get('MASTER_ADDR', 'MASTER_ADDR is not set')})", then)

    beating = threading.Thread(target=pulse, daemon=True)
    beating.start()
    threading.Thread(target=guard, daemon=True).start()
    try:
        yield
        heart.leave()
    finally:
        ended.set()


def _end(world: World, lost: str, then: str) -> None:
    if not world.local_rank:
        print(
            f"wiseale: error: rank {world.rank} of {world.size} has not heard of {lost} for {LOST_SECONDS:g} s: it was "
            f"cut off or has stopped; {then}",
            file=sys.stderr,
            flush=True,
        )
    os._exit(2)
