"""The process group: connect the ranks, let one per machine load data first, end together on an error."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from wiseale.errors import ReportedByAnotherRankError, RunError, WiseAleError
from wiseale.platform.signals import end_with_parent
from wiseale.processes.heartbeat import Beats, watch_others
from wiseale.processes.world import RESUME, STORE, World, report_once

_EXCHANGE_TIMEOUT = timedelta(minutes=5)  # for a rank that hangs; a rank that died is noticed at once
_LOADING_TIMEOUT = timedelta(days=1)  # for another process to pack a dataset
_RANK_0_HEAD_START_SECONDS = 1.0  # so that rank 0 reports an error that all ranks meet


class Group:
    """The connected ranks; on a single process there is no store and nothing is exchanged."""

    def __init__(self, world: World, store: Store | None = None) -> None:
        self._world = world
        self._store = store

    @contextmanager
    def one_per_machine_first(self) -> Iterator[None]:
        """Run the block on one process of each machine first, then on the others: the first fills the data cache."""
        if self._store is None:
            yield
            return
        ready = f"ready/{self._world.rank - self._world.local_rank}"
        if self._world.local_rank:
            self._store.wait([ready], _LOADING_TIMEOUT)
        yield
        if not self._world.local_rank:
            self._store.set(ready, "1")

    def beats(self) -> Beats:
        """A connection to the store that does not wait for other uses of it."""
        assert self._store is not None
        return PrefixStore("beats", self._store.clone())  # type: ignore[attr-defined]

    def should_report(self) -> bool:
        """True on the first rank that asks, so that an error is reported once; rank 0 has a head start."""
        if self._store is None:
            return True
        if not self._world.is_rank_0:
            time.sleep(_RANK_0_HEAD_START_SECONDS)
        try:
            return bool(self._store.add("reported", 1) == 1)
        except RuntimeError:  # the store went down with its owner
            return True


@contextmanager
def process_group(world: World, device: str, then: str = RESUME) -> Iterator[Group]:
    """Connect this process with the other ranks; an error on one rank ends all of them and is reported once.

    ``then`` is what the user is told to do when a rank is lost.
    """
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
        with nullcontext() if launched else watch_others(world, group.beats(), then):
            yield group
    except RuntimeError as error:
        if not _is_lost_connection(error):
            raise
        if launched or not group.should_report():  # the launcher reports which rank died, and why
            raise ReportedByAnotherRankError from None
        raise RunError(
            f"rank {world.rank} of {world.size} lost the others: one of them died or was cut off; {then}"
        ) from None
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
    if kind == "cuda":
        torch.cuda.set_device(world.local_rank)
    if STORE in os.environ:
        store: Store = dist.FileStore(os.environ[STORE], world.size)  # type: ignore[attr-defined]
    else:
        store = next(rendezvous("env://", world.rank, world.size, timeout=_EXCHANGE_TIMEOUT))[0]
    backend = "cpu:gloo,cuda:nccl" if kind == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=world.rank, world_size=world.size, timeout=_EXCHANGE_TIMEOUT)
    return PrefixStore("wiseale", store)


def _is_lost_connection(error: RuntimeError) -> bool:
    """Whether a collective failed because another rank is gone: gloo raises RuntimeErrors that name its source file."""
    return isinstance(error, dist.DistError) or "gloo/" in str(error)
