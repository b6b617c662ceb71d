"""Where runs of a comparison or files of an archive are done: an executor, on this machine or on a Dask cluster."""

from __future__ import annotations

import importlib
import logging
import math
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from wiseale.config import SettingError
from wiseale.errors import RunError

_LOCAL = "local:"
_CONNECT_SECONDS = 20
_POLL_SECONDS = 0.1
_POLL_SECONDS_PER_TASK = 0.002  # a network file system should not be asked about a thousand tasks ten times a second


class Stop(Protocol):
    """Asks tasks to save and end: :class:`threading.Event`, or an event that a cluster's workers see."""

    def set(self) -> None:
        """Ask them."""

    def is_set(self) -> bool:
        """Whether they are asked to."""
        ...


class Task(Protocol):
    """Something to be done once."""

    @property
    def done(self) -> bool:
        """Whether its result is there."""
        ...


@dataclass(frozen=True)
class Ending:
    """How work on a task ended, why it failed, and how many rows it wrote."""

    state: Literal["done", "failed", "stopped"]
    reason: str = ""
    rows: int = 0


T = TypeVar("T", bound=Task)

Tick = Callable[[Mapping[T, Ending], Collection[T]], None]
"""Called a few times a second with the tasks that have ended, and those that have not."""


@dataclass(frozen=True)
class Engine:
    """Calls functions somewhere else: an executor, and the event that asks those functions to end."""

    executor: Executor
    stop: Stop


def run_all(
    tasks: Sequence[T], work: Callable[[T, Stop], Ending], engine: Engine, tick: Tick[T], limit: float = math.inf
) -> dict[T, Ending]:
    """Do every task that is not done, in the given order as far as the engine keeps it; returns how each ended.

    A task that fails does not stop the others. After ``limit`` seconds, or when interrupted, those under way are asked
    to stop, and waited for.
    """
    end = time.monotonic() + limit
    pause = max(_POLL_SECONDS, _POLL_SECONDS_PER_TASK * len(tasks))
    endings = {task: Ending("done") for task in tasks if task.done}
    running: dict[Future[Ending], T] = {}
    try:
        if limit > 0:
            running = {engine.executor.submit(work, task, engine.stop): task for task in tasks if task not in endings}
        while running and time.monotonic() < end:
            for future in [future for future in running if future.done()]:
                endings[running.pop(future)] = _ending(future)
            tick(endings, running.values())
            wait(running, pause)
    finally:
        if running:
            engine.stop.set()
            wait(running)
    return endings


def _ending(future: Future[Ending]) -> Ending:
    """How the work ended; an engine that lost it, or could not call it, is a failure of that task."""
    if future.cancelled():
        return Ending("failed", "the cluster has gone: call again to continue")
    if (error := future.exception()) is not None:
        return Ending("failed", f"{type(error).__name__}: {error}".splitlines()[0])
    return future.result()


def open_engine(cluster: str | None, workers: int) -> AbstractContextManager[Engine]:
    """The engine of a Dask cluster (its address, or ``local:N`` for N workers here), else that many jobs at a time."""
    return local_engine(workers) if cluster is None else dask_engine(cluster)


@contextmanager
def local_engine(workers: int) -> Iterator[Engine]:
    """Threads of this process; a run starts processes and waits for them."""
    with ThreadPoolExecutor(workers) as executor:
        yield Engine(executor, threading.Event())


@contextmanager
def dask_engine(cluster: str) -> Iterator[Engine]:
    """Workers of Dask ``distributed``; what a lost worker was doing is done again by another."""
    count = cluster.removeprefix(_LOCAL)
    is_local = cluster.startswith(_LOCAL)
    if is_local and (not count.isdecimal() or int(count) < 1):
        raise SettingError("cluster", f"must be local:N with at least one worker, or an address, got {cluster}")
    try:
        dask: Any = importlib.import_module("dask")
        distributed: Any = importlib.import_module("distributed")  # only partly typed
    except ImportError:
        raise SettingError("cluster", "needs Dask: pip install 'wiseale[cluster]'") from None
    logger = logging.getLogger("distributed")
    with ExitStack() as stack:
        stack.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL)  # a lost worker is not an error
        address: Any = cluster
        if is_local:
            # Any number of workers may be killed: a run is done by one at a time, and is resumed.
            stack.enter_context(dask.config.set({"distributed.scheduler.allowed-failures": 1000}))
            workers = {"n_workers": int(count), "threads_per_worker": 1, "memory_limit": 0, "dashboard_address": None}
            local_cluster = distributed.LocalCluster(host="127.0.0.1", silence_logs=logging.CRITICAL, **workers)
            address = stack.enter_context(local_cluster)
        try:
            client = stack.enter_context(distributed.Client(address, timeout=_CONNECT_SECONDS))
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise RunError(f"no Dask scheduler answers at {cluster}: {reason}") from None
        stop = distributed.Event(f"wiseale-stop-{uuid.uuid4().hex}", client=client)
        yield Engine(client.get_executor(pure=False), stop)
