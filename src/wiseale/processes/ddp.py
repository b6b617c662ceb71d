"""Average gradients over ranks during the backward pass: torch's DistributedDataParallel for any loss function."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from wiseale.processes.world import World

P = ParamSpec("P")
T = TypeVar("T")


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


def batch_statistics(modules: nn.Module) -> list[Tensor]:
    """Running statistics of the batch normalisation layers; they differ between ranks, and the run keeps rank 0's."""
    layers = [module for module in modules.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    return [buffer for layer in layers for buffer in layer.buffers()]


class _FunctionModule(nn.Module):
    """A function as an nn.Module, which DDP requires, with exactly the parameters whose gradients it averages."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        super().__init__()
        self.averaged = nn.ParameterList(parameters)
        self.function: Callable[..., object]

    def forward(self, *arguments: object) -> object:
        """Call the function."""
        return self.function(*arguments)
