"""Where independent calls run: an executor of :mod:`concurrent.futures`, on this machine or on a Dask cluster.

The calls are the jobs of a comparison and the files of an archive.
"""

from __future__ import annotations

import importlib
import logging
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from wiseale.config import SettingError
from wiseale.errors import RunError

_LOCAL = "local:"
_CONNECT_SECONDS = 20


class Stop(Protocol):
    """Tells jobs to save and end: :class:`threading.Event`, or an event that a cluster's workers see."""

    def set(self) -> None:
        """Tell them."""
        ...

    def is_set(self) -> bool:
        """Whether they were told."""
        ...


@dataclass(frozen=True)
class Engine:
    """Calls functions somewhere else: an executor, and an event that the functions it calls can ask for."""

    executor: Executor
    stop: Stop


def open_engine(cluster: str | None, workers: int) -> AbstractContextManager[Engine]:
    """The engine of a Dask cluster (its address, or ``local:N`` for N workers here), else that many jobs at a time."""
    return local_engine(workers) if cluster is None else dask_engine(cluster)


@contextmanager
def local_engine(workers: int) -> Iterator[Engine]:
    """Threads of this process; a job starts processes and waits for them."""
    with ThreadPoolExecutor(workers) as executor:
        yield Engine(executor, threading.Event())


@contextmanager
def dask_engine(cluster: str) -> Iterator[Engine]:
    """Workers of Dask ``distributed``; what a lost worker was doing is done again by another."""
    local = _local_workers(cluster)
    try:
        dask: Any = importlib.import_module("dask")
        distributed: Any = importlib.import_module("distributed")  # only partly typed
    except ImportError:
        raise SettingError("cluster", "needs Dask: pip install 'wiseale[cluster]'") from None
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        address: Any = cluster
        if local is not None:
            # Any number of workers may be killed: a job is done by one at a time, and is resumed.
            stack.enter_context(dask.config.set({"distributed.scheduler.allowed-failures": 1000}))
            settings = {"n_workers": local, "threads_per_worker": 1, "memory_limit": 0, "dashboard_address": None}
            address = stack.enter_context(
                distributed.LocalCluster(host="127.0.0.1", silence_logs=logging.CRITICAL, **settings)
            )
        try:
            client = stack.enter_context(distributed.Client(address, timeout=_CONNECT_SECONDS))
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise RunError(f"no Dask scheduler answers at {cluster}: {reason}") from None
        yield Engine(
            client.get_executor(pure=False), distributed.Event(f"wiseale-stop-{uuid.uuid4().hex}", client=client)
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask from logging to the terminal: a lost worker is not an error."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _local_workers(cluster: str) -> int | None:
    """The N of ``local:N``; None for an address."""
    if not cluster.startswith(_LOCAL):
        return None
    count = cluster.removeprefix(_LOCAL)
    if not count.isdecimal() or int(count) < 1:
        raise SettingError("cluster", f"must be local:N with at least one worker, or an address, got {cluster}")
    return int(count)
