"""Gradients averaged over ranks while the backward pass runs: torch's DistributedDataParallel, for any loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from wiseale.processes.world import World

P = ParamSpec("P")
T = TypeVar("T")


class Optimiser(Protocol):
    """What averaging asks of an optimiser."""

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What it changes."""
        ...

    def clear(self) -> None:
        """Drop all gradients."""


def averaged(function: Callable[P, T], optimizer: Optimiser, world: World) -> Callable[P, T]:
    """The function; after a backward pass from its result, what the optimiser changes has the mean gradient of all.

    Every parameter of the optimiser must have a gradient then. On one process it is the function itself.
    """
    if world.size == 1:
        return function
    parameters = optimizer.parameters
    turn = _Turn(parameters)
    parallel = DistributedDataParallel(turn, gradient_as_bucket_view=True)
    # DDP arranges its buckets anew after its first step, and with them the order of sums over three ranks or more.
    # A first step without effect keeps that from the steps that count: a resumed run has to add as this one does.
    turn.function = lambda: torch.stack([parameter.sum() for parameter in parameters]).sum()
    parallel().backward()
    optimizer.clear()
    turn.function = function
    return cast(Callable[P, T], parallel)


def batch_statistics(modules: nn.Module) -> list[Tensor]:
    """What batch normalisation keeps for evaluation: each rank has that of its own rows, and the first one's counts."""
    layers = [module for module in modules.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    return [buffer for layer in layers for buffer in layer.buffers()]


class _Turn(nn.Module):
    """A function as the module DDP asks for, with the parameters whose gradients it averages and no others."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        super().__init__()
        self.changed = nn.ParameterList(parameters)
        self.function: Callable[..., object]

    def forward(self, *arguments: object) -> object:
        """Whatever the function returns."""
        return self.function(*arguments)
