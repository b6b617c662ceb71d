"""Collective operations between ranks: gather with gradients, sums, broadcast, random rows of a global batch.

Inside ``with split_batch(world)`` the rows a rank holds are its part of a global batch. Outside, and on one process,
they are the whole batch, and :func:`gather` and :func:`draw_rows` exchange nothing.

Shapes: a rank holds m rows, the global batch M = m · world.size rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from wiseale.kernels import derivatives
from wiseale.processes.world import ALONE, World

_EXCHANGE_SECONDS = 0.5  # aimed at between two exchanges of MaxOverRanks
_EXCHANGE_STEPS = 50  # at most between two exchanges

_batch_world: ContextVar[World] = ContextVar("batch_world", default=ALONE)


@contextmanager
def split_batch(world: World) -> Iterator[None]:
    """In this context each rank holds its part of a global batch; ``split_batch(ALONE)``: the whole batch."""
    token = _batch_world.set(world)
    try:
        yield
    finally:
        _batch_world.reset(token)


def batch_world() -> World:
    """The ranks over which the current batch is split."""
    return _batch_world.get()


def gather(rows: Tensor) -> Tensor:
    """The rows of all ranks in rank order, (m, …) to (M, …); the backward pass sums the gradients of all ranks.

    DDP averages gradients over ranks, so a loss that every rank computes from all M rows has the same gradient as on
    one process.
    """
    return gather_async(rows, same_loss=False)()


def gather_async(rows: Tensor, *, same_loss: bool) -> Callable[[], Tensor]:
    """Start to :func:`gather`; the returned function waits for the result, so that other work can be done meanwhile.

    With ``same_loss`` every rank must compute the same loss from the gathered rows. The gradients are then equal on all
    ranks, and the backward pass multiplies by the world size instead of exchanging them.
    """
    world = _batch_world.get()
    if world.size == 1:
        return lambda: rows
    parts = [torch.empty_like(rows, memory_format=torch.contiguous_format) for _ in range(world.size)]
    exchange = dist.all_gather(parts, rows.detach().contiguous(), async_op=True)

    def finish() -> Tensor:
        assert exchange is not None
        exchange.wait()
        gathered: Tensor = _Gather.apply(rows, torch.cat(parts), world, same_loss)  # type: ignore[no-untyped-call]
        return gathered

    return finish


def draw_rows(n: int, draw: Callable[[int], Tensor]) -> Tensor:
    """Random numbers for this rank's n rows, (n, …), cut from ``draw(M)`` for the global batch.

    So the noise of a row does not depend on the number of ranks.
    """
    world = _batch_world.get()
    total = n * world.size
    return draw(total)[world.part(total)]


class _Gather(torch.autograd.Function):
    """Already gathered rows as a differentiable function of this rank's rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, gathered: Tensor, world: World, same_loss: bool) -> Tensor:
        ctx.world, ctx.same_loss = world, same_loss
        return gathered

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        derivatives.refuse("rows gathered from other processes")
        part = ctx.world.part(len(grad))
        if ctx.same_loss:
            return grad[part] * ctx.world.size, None, None, None
        summed = grad.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(summed)
        return summed[part], None, None, None


def sum_over_ranks(values: Tensor, world: World) -> Tensor:
    """The elementwise sum of all ranks' values, the same on every rank."""
    if world.size > 1:
        values = values.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(values)
    return values


def broadcast(tensors: Iterable[Tensor], world: World) -> None:
    """Copy the values of rank 0 to all ranks, in place."""
    if world.size > 1:
        for tensor in tensors:
            dist.broadcast(tensor, 0)


class MaxOverRanks:
    """The largest of the ranks' values, returned at the same step on all of them.

    Ranks exchange every 0.5 seconds or 50 steps, whichever comes first; at steps in between the result is 0.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._interval = self._steps_left = 1
        self._exchanged_at = time.monotonic()

    def __call__(self, value: int) -> int:
        """Every rank must call this once per step."""
        if self._world.size == 1:
            return value
        self._steps_left -= 1
        if self._steps_left > 0:
            return 0
        steps_per_second = self._interval / max(time.monotonic() - self._exchanged_at, 1e-6)
        interval = min(max(int(steps_per_second * _EXCHANGE_SECONDS), 1), _EXCHANGE_STEPS)
        largest = torch.tensor([value, -interval])  # -interval: the shortest interval of all ranks is taken
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        self._interval = self._steps_left = -int(largest[1])
        self._exchanged_at = time.monotonic()
        return int(largest[0])
