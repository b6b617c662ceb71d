"""Layers in sequence, whose runs of convolutions are trained by the compiled kernel."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from wiseale.native import native
from wiseale.networks.products import SAMPLES
from wiseale.networks.programs import Layer, Programs
from wiseale.networks.same_padding import SameConv, SameConvTranspose

_FEWEST_ROWS = 8  # of a batch, below which the kernel's tiles are not full


class Stack(nn.Sequential):
    """``nn.Sequential``, names of parameters included; faster where a CPU trains convolutions.

    Each run of convolutions and their ReLUs is then one autograd function around the compiled kernel, which takes a few
    samples through all of its layers before the next ones; its gradient can be taken once, not twice. Elsewhere, and
    where a graph is being recorded, the layers are torch's own and called one by one.
    """

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.parts = list(_parts(layers))

    def forward(self, x: Tensor) -> Tensor:
        """Apply every layer."""
        if not _trains_on_cpu(x):
            return super().forward(x)  # type: ignore[no-any-return, no-untyped-call]
        for part in self.parts:
            x = part(x)
        return x


def _trains_on_cpu(x: Tensor) -> bool:
    """Whether runs are worth it: float32 on a CPU, with a gradient, enough rows, no graph recorded, kernels at hand."""
    if torch.compiler.is_compiling() or torch.compiler.is_exporting():  # first: then the number of rows is a symbol
        return False
    plain = x.device.type == "cpu" and x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    return plain and torch.is_grad_enabled() and len(x) >= _FEWEST_ROWS and _has_kernels()


def _has_kernels() -> bool:
    """Whether there are kernels, for all of torch's threads."""
    return native().library is not None and (native().parallel or torch.get_num_threads() == 1)


class Run:
    """Convolutions one after the other, with the ReLUs that follow them."""

    def __init__(self) -> None:
        self.modules: list[SameConv | SameConvTranspose] = []
        self.relu: list[bool] = []

    def takes(self, module: SameConv | SameConvTranspose) -> bool:
        """Whether this one can come next: signals that need room around them come from outside or go there."""
        if not self.modules:
            return True
        before = self.modules[-1]
        ends = isinstance(before, SameConvTranspose) and before.geometry.together > 1
        starts = isinstance(module, SameConv) and module.geometry.together > 1
        return not ends and not starts

    @cached_property
    def programs(self) -> Programs:
        """For the kernel."""
        return Programs(
            [
                Layer(module.geometry, isinstance(module, SameConvTranspose), relu)
                for module, relu in zip(self.modules, self.relu, strict=True)
            ]
        )

    def __call__(self, x: Tensor) -> Tensor:
        """(M, C, *size) to (M, N, *size')."""
        parameters = [p for module in self.modules for p in (module.convolution.weight, module.convolution.bias)]
        y: Tensor = _Convolutions.apply(x, self.programs, *parameters)  # type: ignore[no-untyped-call]
        return y


class _Convolutions(torch.autograd.Function):
    """(M, C, *size) to (M, N, *size') through all layers of a run."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, programs: Programs, *parameters: Tensor) -> Tensor:
        x, parameters = x.contiguous(), tuple(p.contiguous() for p in parameters)
        size, weights, biases = len(x), parameters[::2], parameters[1::2]
        rows, columns, channels = programs.layers[-1].outside
        y = x.new_empty((size, channels, columns) if x.ndim == 3 else (size, channels, rows, columns))
        scratch = x.new_empty(programs.scratch.floats(size))
        addresses = [tensor.data_ptr() for tensor in (x, y, *weights, *biases)]
        programs.forwards([addresses + programs.scratch.addresses(scratch, size)] * threads_for(size), size)
        ctx.programs, ctx.x_shape = programs, x.shape
        ctx.save_for_backward(y, scratch, *weights)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        programs: Programs = ctx.programs
        y, signals, *weights = ctx.saved_tensors
        gradient, size, threads = gradient.contiguous(), len(y), threads_for(len(y))
        scratch = y.new_empty(programs.gradient_scratch.floats(size))
        to_x = y.new_empty(ctx.x_shape) if ctx.needs_input_grad[0] else None
        to_weights = [torch.empty_like(weight) for weight in weights]
        to_biases = [y.new_empty(channels) for channels in programs.channels]
        found = [y.new_zeros(programs.found.floats(0)) for _ in range(threads)]
        shared = [
            *(gradient.data_ptr(), y.data_ptr(), 0 if to_x is None else to_x.data_ptr()),
            *programs.signal_addresses(signals, size),
            *(tensor.data_ptr() for tensor in (*weights, *to_weights, *to_biases)),
            *programs.gradient_scratch.addresses(scratch, size),
        ]
        program = programs.backwards if to_x is None else programs.backwards_to_input
        program([shared + programs.found.addresses(own, 0) for own in found], size)
        return to_x, None, *(part for pair in zip(to_weights, to_biases, strict=True) for part in pair)


def threads_for(samples: int) -> int:
    """How many threads share the samples: torch's, if there is enough for all."""
    return min(torch.get_num_threads(), -(-samples // SAMPLES))


def _parts(layers: tuple[nn.Module, ...]) -> Iterator[nn.Module | Run]:
    """The layers in order, convolutions that the kernel takes, and their ReLUs, together."""
    run = Run()
    for layer in layers:
        if isinstance(layer, SameConv | SameConvTranspose) and layer.geometry.possible:
            if not run.takes(layer):
                yield run
                run = Run()
            run.modules.append(layer)
            run.relu.append(False)
        elif isinstance(layer, nn.ReLU) and run.relu and not run.relu[-1]:
            run.relu[-1] = True
        else:
            if run.modules:
                yield run
                run = Run()
            yield layer
    if run.modules:
        yield run
