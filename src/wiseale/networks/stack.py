"""Layers in sequence, whose runs of convolutions are trained by the compiled kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from wiseale.native import native
from wiseale.networks.products import SAMPLES, Axis, Convolution
from wiseale.networks.programs import Layer, Programs
from wiseale.networks.same_padding import Pointwise, SameConv, SameConvTranspose

_FEWEST_ROWS = 8  # of a batch, below which the kernel's tiles are not full
_MOST_LINEAR = 1 << 16  # entries of a linear layer's weight, above which torch's product is the faster one


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
    """Layers one after the other that the kernel takes together: convolutions, linear layers behind them, ReLUs.

    Linear layers by themselves are left to torch, which is as good at them.
    """

    def __init__(self) -> None:
        self._holders: list[nn.Module] = []  # of weight and bias
        self._layers: list[Layer] = []
        self._shape: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._layers)

    def take(self, module: nn.Module) -> bool:
        """Take this module, unless it cannot come next."""
        if isinstance(module, nn.ReLU):
            return self._take_relu()
        if isinstance(module, nn.Flatten):
            return self._take_flatten(module)
        if isinstance(module, SameConv | SameConvTranspose):
            shape = (module.convolution.out_channels, *module.out)
            return self._take(module.convolution, module.geometry, isinstance(module, SameConvTranspose), shape)
        if isinstance(module, Pointwise):
            return self._take(module, module.geometry, False, (module.out_channels, 1))
        if isinstance(module, nn.Linear) and len(self._shape) == 1 and module.weight.numel() <= _MOST_LINEAR:
            return self._take(module, self._linear(module), False, (module.out_features,))
        return False

    def _take(self, holder: nn.Module, geometry: Convolution, lengthens: bool, shape: tuple[int, ...]) -> bool:
        """Signals that need room around them come from outside or go there."""
        last = self._layers[-1] if self._layers else None
        ends = last is not None and last.gradient_room != (0, 0)
        layer = Layer(geometry, lengthens, relu=False)
        if not geometry.possible or ends or (last is not None and layer.room != (0, 0)):
            return False
        self._holders.append(holder)
        self._layers.append(layer)
        self._shape = shape
        return True

    def _take_relu(self) -> bool:
        if not self._layers or self._layers[-1].relu:
            return False
        self._layers[-1] = replace(self._layers[-1], relu=True)
        return True

    def _take_flatten(self, module: nn.Flatten) -> bool:
        if (
            not self._layers
            or (module.start_dim, module.end_dim) != (1, -1)
            or self._layers[-1].gradient_room != (0, 0)
        ):
            return False
        self._shape = (math.prod(self._shape),)
        return True

    def _linear(self, module: nn.Linear) -> Convolution:
        """As a convolution whose kernel covers everything: its weights lie in the same order."""
        rows, columns, channels = self._layers[-1].outside
        axes = [Axis(size, 1, size, 1, 0) for size in (rows, columns)]
        return Convolution.of(axes, channels, module.out_features)

    @cached_property
    def programs(self) -> Programs:
        """For the kernel."""
        return Programs(self._layers)

    def __call__(self, x: Tensor) -> Tensor:
        """(M, C, *size) to (M, N, *size')."""
        parameters = [p for holder in self._holders for p in (holder.weight, holder.bias)]
        y: Tensor = _Convolutions.apply(x, self.programs, self._shape, *parameters)  # type: ignore[no-untyped-call]
        return y


class _Convolutions(torch.autograd.Function):
    """(M, C, *size) to (M, N, *size') through all layers of a run."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, programs: Programs, shape: tuple[int, ...], *parameters: Tensor) -> Tensor:
        x, parameters = x.contiguous(), tuple(p.contiguous() for p in parameters)
        size, weights, biases = len(x), parameters[::2], parameters[1::2]
        y, scratch = x.new_empty(size, *shape), x.new_empty(programs.scratch.floats(size))
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
        return to_x, None, None, *(part for pair in zip(to_weights, to_biases, strict=True) for part in pair)


def threads_for(samples: int) -> int:
    """How many threads share the samples: torch's, if there is enough for all."""
    return min(torch.get_num_threads(), -(-samples // SAMPLES))


def _parts(layers: tuple[nn.Module, ...]) -> Iterator[nn.Module | Run]:
    """The layers in order, those that the kernel takes together in runs."""
    run = Run()
    for layer in layers:
        if run.take(layer):
            continue
        if run:
            yield run
            run = Run()
        if not run.take(layer):
            yield layer
    if run:
        yield run
