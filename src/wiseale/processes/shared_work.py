"""Independent tasks done once each, on an engine, and shared with other processes that do the same.

Whoever works on a task holds its lock. A failed task does not stop the others, and one that another process works on is
left to it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from wiseale.platform.locks import is_locked
from wiseale.processes.engines import Engine

_POLL_SECONDS = 0.1
_POLL_SECONDS_PER_TASK = 0.002  # a network file system should not be asked about a thousand tasks ten times a second
_TAKEN_SECONDS = 1.0  # between looks at a task that another process works on


class Task(Protocol):
    """Something to be done once."""

    @property
    def done(self) -> bool:
        """Whether its result is there, whoever made it."""
        ...

    @property
    def lock(self) -> Path:
        """The file that whoever works on it has locked."""
        ...


@dataclass(frozen=True)
class Ended:
    """How work on a task ended: ``taken`` means that another process works on it. ``rows`` were written by it."""

    state: Literal["done", "failed", "taken", "stopped"]
    reason: str = ""
    rows: int = 0


T = TypeVar("T", bound=Task)

Tick = Callable[[Mapping[T, Ended], Collection[T]], None]
"""Called a few times a second with the tasks that have ended, or are taken, and those that have not."""


def share_work(
    tasks: Sequence[T],
    submit: Callable[[T], Future[Ended]],
    engine: Engine,
    tick: Tick[T],
    limit: float = math.inf,
    *,
    wait_for_others: bool = True,
) -> dict[T, Ended]:
    """Do every task that is not done, in the given order as far as the engine keeps it; returns how each ended.

    Tasks that another process works on come last: they are waited for, and done here if that process gives up, unless
    ``wait_for_others`` is False. After ``limit`` seconds, or when interrupted, those under way are stopped.
    """
    end = time.monotonic() + limit
    pause = max(_POLL_SECONDS, _POLL_SECONDS_PER_TASK * len(tasks))
    ended = {task: Ended("done") for task in tasks if task.done}
    to_submit = [task for task in tasks if task not in ended]
    running: dict[Future[Ended], T] = {}
    look_again: dict[T, float] = {}  # when to look at a task that is taken
    try:
        while (to_submit or running or look_again) and time.monotonic() < end:
            for task in to_submit:
                running[submit(task)] = task
            to_submit = []
            for future in [future for future in running if future.done()]:
                task = running.pop(future)
                ended[task] = _result(future)
                if ended[task].state == "taken" and wait_for_others:
                    look_again[task] = time.monotonic() + _TAKEN_SECONDS
            for task in [task for task, due in look_again.items() if time.monotonic() >= due]:
                look_again[task] = time.monotonic() + _TAKEN_SECONDS
                if task.done or not is_locked(task.lock):
                    del look_again[task]
                    to_submit.append(task)  # returns at once if it is done
            tick(ended, running.values())
            if to_submit or running or look_again:
                wait(running, pause) if running else time.sleep(pause)
    finally:
        if running:
            engine.stop.set()
            wait(running)
    return ended


def _result(future: Future[Ended]) -> Ended:
    """How the work ended; an engine that lost it, or could not call it, is a failure of that task."""
    if future.cancelled():
        return Ended("failed", "the cluster has gone: call again to continue")
    if (error := future.exception()) is not None:
        return Ended("failed", f"{type(error).__name__}: {error}".splitlines()[0])
    return future.result()
