"""The process group: connect the ranks, let one per machine load data first, end together on an error."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from wiseale.errors import ReportedByAnotherRankError, RunError, WiseAleError
from wiseale.platform.machine import end_with_parent
from wiseale.processes.world import RESUME, STORE, World, report_once

EXCHANGE_SECONDS = 120
"""How long a rank waits in a collective: a cut cable closes no connection, and ends the run after this time."""

_LOADING = timedelta(seconds=3600)  # for other ranks to load data, or to pack it
_RANK_0_HEAD_START_SECONDS = 1.0  # so that rank 0 reports an error that all ranks meet
_STORE_SECONDS = 10.0  # for the store to answer; one that cannot be reached never does


class Group:
    """The connected ranks; on a single process there is no store and nothing is exchanged."""

    def __init__(self, world: World, store: Store | None = None) -> None:
        self._world, self._store = world, store

    @contextmanager
    def one_per_machine_first(self) -> Iterator[None]:
        """Run the block on one process of each machine first, then on the others: the first fills the data cache.

        No rank leaves before all have run it, because collectives wait much shorter than loading data may take.
        """
        if self._store is None:
            yield
            return
        loading = dist.new_group(backend="gloo", timeout=_LOADING)
        ready = f"ready/{self._world.rank - self._world.local_rank}"
        if self._world.local_rank:
            self._store.wait([ready], _LOADING)
        yield
        if not self._world.local_rank:
            self._store.set(ready, "1")
        dist.barrier(group=loading)

    def should_report(self) -> bool:
        """True on the first rank that asks, so that an error is reported once; rank 0 has a head start.

        Where the store cannot be reached any more, on the first rank of each machine.
        """
        if self._store is None:
            return True
        if not self._world.is_rank_0:
            time.sleep(_RANK_0_HEAD_START_SECONDS)
        store, count = self._store, list[int]()

        def ask() -> None:
            with suppress(RuntimeError):  # the store went down with its owner
                count.append(store.add("reported", 1))

        question = threading.Thread(target=ask, daemon=True)
        question.start()
        question.join(_STORE_SECONDS)
        return count == [1] if count else not self._world.local_rank


@contextmanager
def process_group(world: World, device: str) -> Iterator[Group]:
    """Connect this process with the other ranks; an error on one rank ends all of them and is reported once."""
    if world.size == 1:
        yield Group(world)
        return
    launched = STORE in os.environ
    if launched:
        end_with_parent()
    try:
        group = Group(world, _connect(world, device))
    except (RuntimeError, ValueError, OSError) as error:  # a ValueError: MASTER_ADDR or another variable is missing
        reason = str(error).splitlines()[0]
        raise RunError(f"rank {world.rank} of {world.size} could not meet the others: {reason}") from None
    try:
        yield group
    except RuntimeError as error:
        if not _is_lost_connection(error):
            raise
        died = "Timed out" not in str(error)
        if (launched and died) or not group.should_report():  # the launcher reports which rank died, and why
            raise ReportedByAnotherRankError from None
        reason = "one of them died" if died else f"one was cut off or has stopped {EXCHANGE_SECONDS} s ago"
        raise RunError(f"rank {world.rank} of {world.size} lost the others: {reason}; {RESUME}") from None
    except WiseAleError as error:
        if not group.should_report():
            raise ReportedByAnotherRankError from error
        raise
    dist.destroy_process_group()


def _connect(world: World, device: str) -> Store:
    """Start the process group: gloo for tensors on the CPU, nccl for tensors on GPUs."""
    kind = device.partition(":")[0]
    with report_once(world):
        if kind not in ("cpu", "cuda"):
            raise RunError(f"several processes train on cpu or cuda, not on {kind}: give --processes 1 or --device cpu")
        if device != kind and world.size > 1:
            raise RunError(f"several processes cannot share {device}: give --device {kind}, and each takes its own")
    backend, limit = "gloo", timedelta(seconds=EXCHANGE_SECONDS)
    if kind == "cuda":
        torch.cuda.set_device(world.local_rank)
        backend = "cpu:gloo,cuda:nccl"
    if STORE in os.environ:
        store: Store = dist.FileStore(os.environ[STORE], world.size)  # type: ignore[attr-defined]
    else:
        store = next(rendezvous("env://", world.rank, world.size, timeout=limit))[0]
    dist.init_process_group(backend, store=store, rank=world.rank, world_size=world.size, timeout=limit)
    return PrefixStore("wiseale", store)


def _is_lost_connection(error: RuntimeError) -> bool:
    """Whether a collective failed because another rank is gone: gloo raises RuntimeErrors that name its source file."""
    return isinstance(error, dist.DistError) or "gloo/" in str(error)
