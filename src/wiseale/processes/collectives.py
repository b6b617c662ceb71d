"""What ranks exchange: the rows of everyone with their gradient, random rows, sums, agreement.

Inside ``with sharing(world)`` the rows at hand are this rank's part of a batch that all ranks hold together; outside,
and on one process, a batch is whole and :func:`gather` and :func:`draw_rows` do nothing.
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
from torch.autograd.function import once_differentiable

from wiseale.processes.world import ALONE, World

_ASK_SECONDS = 0.5  # between two exchanges about whether to stop
_ASK_STEPS = 50  # between them at the most

_shared: ContextVar[World] = ContextVar("shared", default=ALONE)


@contextmanager
def sharing(world: World) -> Iterator[None]:
    """Until it ends, the rows at hand are this rank's part of a batch; ``sharing(ALONE)``: they are the whole batch."""
    token = _shared.set(world)
    try:
        yield
    finally:
        _shared.reset(token)


def shared() -> World:
    """Who holds the batch at hand."""
    return _shared.get()


def gather(rows: Tensor) -> Tensor:
    """The rows of all ranks in their order, (m, …) to (M, …); in the backward pass, the sum of all ranks' gradients.

    DDP averages over ranks. A loss that each computes from everyone's rows then has the gradient it has on one process.
    """
    return gather_later(rows, same_use=False)()


def gather_later(rows: Tensor, *, same_use: bool) -> Callable[[], Tensor]:
    """Begin to :func:`gather`; the function returned waits for the others' rows, so that work may be done before.

    With ``same_use`` every rank must go on to compute the same from everyone's rows. Their gradients are then alike,
    and the backward pass has no need to exchange them.
    """
    world = _shared.get()
    if world.size == 1:
        return lambda: rows
    parts = [torch.empty_like(rows, memory_format=torch.contiguous_format) for _ in range(world.size)]
    exchange = dist.all_gather(parts, rows.detach().contiguous(), async_op=True)

    def finish() -> Tensor:
        assert exchange is not None
        exchange.wait()
        everyone: Tensor = _Gathered.apply(rows, torch.cat(parts), world, same_use)  # type: ignore[no-untyped-call]
        return everyone

    return finish


def draw_rows(n: int, draw: Callable[[int], Tensor]) -> Tensor:
    """Random numbers for the n rows at hand, (n, …): ``draw(count)`` is made for the whole batch and cut."""
    world = _shared.get()
    total = n * world.size
    return draw(total)[world.part(total)]


class _Gathered(torch.autograd.Function):
    """Everyone's rows, as a function of this rank's."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, everyone: Tensor, world: World, same_use: bool) -> Tensor:
        ctx.world, ctx.same_use = world, same_use
        return everyone

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        part = ctx.world.part(len(grad))
        if ctx.same_use:
            return grad[part] * ctx.world.size, None, None, None
        summed = grad.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(summed)
        return summed[part], None, None, None


def total(values: Tensor, world: World) -> Tensor:
    """The sum over ranks."""
    if world.size > 1:
        values = values.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(values)
    return values


def spread(tensors: Iterable[Tensor], world: World) -> None:
    """Give every rank the first one's values, in place."""
    if world.size > 1:
        for tensor in tensors:
            dist.broadcast(tensor, 0)


class Agreement:
    """The largest answer of any rank, at the same steps on all of them; asked now and then, 0 in between."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._interval = self._left = 1
        self._asked = time.monotonic()

    def __call__(self, mine: int) -> int:
        """Called once a step by every rank."""
        if self._world.size == 1:
            return mine
        self._left -= 1
        if self._left > 0:
            return 0
        steps_per_second = self._interval / max(time.monotonic() - self._asked, 1e-6)
        wanted = min(max(int(steps_per_second * _ASK_SECONDS), 1), _ASK_STEPS)
        answers = torch.tensor([mine, -wanted])
        dist.all_reduce(answers, dist.ReduceOp.MAX)
        self._interval = self._left = -int(answers[1])
        self._asked = time.monotonic()
        return int(answers[0])
