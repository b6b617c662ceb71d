"""Independent computations divided among ranks, whose results every rank receives: what evaluation is made of.

The computations are the same however many ranks there are, and results are exchanged as bytes, so that a number of
ranks changes no digit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
import torch.distributed as dist
from safetensors.torch import load, save
from torch import Tensor

from wiseale.processes.world import ALONE, World

Result = tuple[Tensor, ...]

_world: ContextVar[World] = ContextVar("task_world", default=ALONE)


@dataclass(frozen=True)
class Task:
    """A computation that returns tensors, and its cost in any unit that it shares with the tasks beside it."""

    compute: Callable[[], Result]
    cost: float = 1.0


@contextmanager
def divide_tasks(world: World) -> Iterator[None]:
    """In this context :func:`results` divides tasks among these ranks, each of which must ask for the same tasks."""
    token = _world.set(world)
    try:
        yield
    finally:
        _world.reset(token)


def results(tasks: Sequence[Task]) -> list[Result]:
    """The result of every task, in order, on every rank; each task is computed by one rank."""
    world = _world.get()
    if world.size == 1:
        return [task.compute() for task in tasks]
    ranks = assigned([task.cost for task in tasks], world.size)
    own = {
        f"{number}/{place}": tensor.contiguous()
        for number, task in enumerate(tasks)
        if ranks[number] == world.rank
        for place, tensor in enumerate(task.compute())
    }
    gathered = {name: tensor for part in _gather_bytes(save(own), world) for name, tensor in load(part).items()}
    return [_ordered(gathered, number) for number in range(len(tasks))]


def assigned(costs: Sequence[float], ranks: int) -> list[int]:
    """The rank of each task: in the order given, each goes to the rank with the least to do so far."""
    load_of, chosen = [0.0] * ranks, list[int]()
    for cost in costs:
        chosen.append(load_of.index(min(load_of)))
        load_of[chosen[-1]] += cost
    return chosen


def _ordered(gathered: dict[str, Tensor], number: int) -> Result:
    result = list[Tensor]()
    while (name := f"{number}/{len(result)}") in gathered:
        result.append(gathered[name])
    return tuple(result)


def _gather_bytes(own: bytes, world: World) -> list[bytes]:
    """The bytes of every rank, in the order of the ranks."""
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(world.size)]
    dist.all_gather(sizes, torch.tensor([len(own)]))
    longest = max(int(size) for size in sizes)
    padded = torch.zeros(longest, dtype=torch.uint8)
    padded[: len(own)] = torch.frombuffer(bytearray(own), dtype=torch.uint8)
    parts = [torch.empty_like(padded) for _ in range(world.size)]
    dist.all_gather(parts, padded)
    return [part[: int(size)].numpy().tobytes() for part, size in zip(parts, sizes, strict=True)]
