"""Joining and leaving: how ranks find each other, wait for each other, and end together."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from wiseale.errors import RunError, ToldElsewhereError, WiseAleError
from wiseale.processes.world import STORE, World, told_once

_PATIENCE = timedelta(minutes=5)  # for one exchange: a rank that died is noticed at once, this is for one that hangs
_LOADING = timedelta(days=1)  # for another process to pack a dataset
_FIRST_WORD_SECONDS = 1.0  # an error that all ranks meet is told by rank 0


class Group:
    """The ranks while they are joined."""

    def __init__(self, world: World, store: Store | None = None) -> None:
        self._world = world
        self._store = store

    @contextmanager
    def one_first(self) -> Iterator[None]:
        """One process of each machine goes first, the others find its work done: for loading data into a cache."""
        if self._store is None:
            yield
            return
        ready = f"ready/{self._world.rank - self._world.local_rank}"
        if self._world.local_rank:
            self._store.wait([ready], _LOADING)
        yield
        if not self._world.local_rank:
            self._store.set(ready, "1")

    def may_speak(self) -> bool:
        """True on the first rank that asks, rank 0 if it asks soon: so that an error common to all is told once."""
        if self._store is None:
            return True
        if not self._world.leads:
            time.sleep(_FIRST_WORD_SECONDS)
        try:
            return bool(self._store.add("spoken", 1) == 1)
        except RuntimeError:  # the store went down with its owner
            return True


@contextmanager
def joined(world: World, device: str) -> Iterator[Group]:
    """Exchange with the other ranks is possible until this ends; an error on any of them ends all, told once."""
    if world.size == 1:
        yield Group(world)
        return
    launched = STORE in os.environ
    if launched:
        _end_with_parent()
    try:
        group = Group(world, _connect(world, device))
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise RunError(f"rank {world.rank} of {world.size} could not meet the others: {reason}") from None
    try:
        yield group
    except RuntimeError as error:
        if not _is_lost_connection(error):
            raise
        if launched or not group.may_speak():  # whoever launched us says more: which rank died, and of what
            raise ToldElsewhereError from None
        raise RunError(
            f"rank {world.rank} of {world.size} lost the others: one of them died or was cut off; "
            "`wiseale resume` continues from the last checkpoint"
        ) from None
    except WiseAleError as error:
        if not group.may_speak():
            raise ToldElsewhereError from error
        raise
    dist.destroy_process_group()


def _connect(world: World, device: str) -> Store:
    """Find the others and start the process group: gloo for tensors on the CPU, nccl for those on GPUs."""
    kind = device.partition(":")[0]
    with told_once(world):
        if kind not in ("cpu", "cuda"):
            raise RunError(f"several processes train on cpu or cuda, not on {kind}: give --processes 1 or --device cpu")
    if kind == "cuda":
        torch.cuda.set_device(world.local_rank)
    if STORE in os.environ:
        store: Store = dist.FileStore(os.environ[STORE], world.size)  # type: ignore[attr-defined]
    else:
        store = next(rendezvous("env://", world.rank, world.size, timeout=_PATIENCE))[0]
    backend = "cpu:gloo,cuda:nccl" if kind == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=world.rank, world_size=world.size, timeout=_PATIENCE)
    return PrefixStore("wiseale", store)


def _is_lost_connection(error: RuntimeError) -> bool:
    """Whether an exchange failed because of another rank: gloo raises plain RuntimeErrors that name its source file."""
    return isinstance(error, dist.DistError) or "gloo/" in str(error)


def _end_with_parent() -> None:
    """Save and end if whoever launched this rank is gone, however it went: our standard input is a pipe it holds."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
