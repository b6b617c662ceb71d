"""Collective operations between ranks: gather with gradients, sums, broadcast, gradients averaged by torch's DDP.

Shapes: a rank holds m rows, the global batch M = m · world.size rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from wiseale.kernels import derivatives
from wiseale.processes.world import World

P = ParamSpec("P")
T = TypeVar("T")

_EXCHANGE_SECONDS = 0.5  # aimed at between two exchanges of MaxOverRanks
_EXCHANGE_STEPS = 50  # at most between two exchanges


def gather(rows: Tensor, world: World) -> Tensor:
    """The rows of all ranks in rank order, (m, …) to (M, …), on every rank.

    Every rank must compute the same loss from them. The gradients are then equal on all ranks, and the backward pass
    exchanges nothing: it multiplies by the world size. DDP averages gradients over ranks, so the gradient is that of
    one process.
    """
    return gather_async(rows, world)()


def gather_async(rows: Tensor, world: World) -> Callable[[], Tensor]:
    """Start to :func:`gather`; the returned function waits for the result, so that other work can be done meanwhile."""
    if world.size == 1:
        return lambda: rows
    parts = [torch.empty_like(rows, memory_format=torch.contiguous_format) for _ in range(world.size)]
    exchange = dist.all_gather(parts, rows.detach().contiguous(), async_op=True)

    def finish() -> Tensor:
        assert exchange is not None
        exchange.wait()
        gathered: Tensor = _Gather.apply(rows, torch.cat(parts), world)  # type: ignore[no-untyped-call]
        return gathered

    return finish


class _Gather(torch.autograd.Function):
    """Already gathered rows as a differentiable function of this rank's rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, gathered: Tensor, world: World) -> Tensor:
        ctx.world = world
        return gathered

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        derivatives.refuse("rows gathered from other processes")
        return grad[ctx.world.part(len(grad))] * ctx.world.size, None, None


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


def average_gradients(function: Callable[P, T], parameters: list[nn.Parameter], world: World) -> Callable[P, T]:
    """Wrap a function so that a backward pass from its result averages the parameters' gradients over ranks.

    The backward pass must reach every one of them. On one process the function is returned unchanged.
    """
    if world.size == 1:
        return function
    module = _FunctionModule(parameters)
    parallel = DistributedDataParallel(module, gradient_as_bucket_view=True)
    # DDP rebuilds its buckets after its first step, which changes the order of summation over three or more ranks.
    # This dummy step makes every real step use the final buckets, so that a resumed run rounds in the same way.
    module.function = lambda: torch.stack([parameter.sum() for parameter in parameters]).sum()
    parallel().backward()
    parallel.zero_grad()
    module.function = function
    return cast(Callable[P, T], parallel)


class _FunctionModule(nn.Module):
    """A function as an nn.Module, which DDP requires, with exactly the parameters whose gradients it averages."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        super().__init__()
        self.averaged = nn.ParameterList(parameters)
        self.function: Callable[..., object]

    def forward(self, *arguments: object) -> object:
        """Call the function."""
        return self.function(*arguments)


def batch_statistics(modules: nn.Module) -> list[Tensor]:
    """Running statistics of the batch normalisation layers; they differ between ranks, and the run keeps rank 0's."""
    layers = [module for module in modules.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    return [buffer for layer in layers for buffer in layer.buffers()]
