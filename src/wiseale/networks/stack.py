"""Layers in sequence, whose runs of convolutions are trained by the compiled kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from wiseale.kernels import SAMPLES, native
from wiseale.kernels.geometry import Axis, Convolution
from wiseale.kernels.programs import Layer, Programs
from wiseale.networks.same_padding import Pointwise, SameConv, SameConvTranspose

_FEWEST_ROWS = 8  # of a batch, below which the kernel's tiles are not full
_MOST_LINEAR = 1 << 16  # entries of a linear layer's weight, above which torch's product is the faster one


class Stack(nn.Sequential):
    """``nn.Sequential``, names of parameters included; faster where a CPU trains convolutions.

    Each run of convolutions and their ReLUs is then one autograd function around the compiled kernel, which takes a few
    samples through all of its layers before the next ones; its gradient can be taken once, not twice. Elsewhere, and
    where a graph is being recorded, the layers are torch's own and called one by one.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Apply every layer."""
        if not _trains_on_cpu(x):
            return super().forward(x)  # type: ignore[no-any-return, no-untyped-call]
        for part in self.parts():
            x = part(x)
        return x

    def parts(self) -> list[nn.Module | Run]:
        """The layers, in runs where the kernel takes them; found again if a layer was replaced."""
        layers = tuple(self)
        if self.__dict__.get("_layers_of_parts") != layers:
            self._layers_of_parts, self._parts = layers, list(_parts(layers))
        return self._parts


def _trains_on_cpu(x: Tensor) -> bool:
    """Whether runs are worth it: float32 on a CPU, with a gradient, enough rows, no graph recorded, kernels at hand."""
    if torch.compiler.is_compiling() or torch.compiler.is_exporting() or torch._C._get_tracing_state() is not None:
        return False  # asked first: then the number of rows is a symbol
    plain = _is_plain(x) and not torch.is_autocast_enabled("cpu")
    return plain and torch.is_grad_enabled() and len(x) >= _FEWEST_ROWS and _has_kernels()


def _is_plain(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype == torch.float32


def _has_kernels() -> bool:
    """Whether there are kernels, for all of torch's threads."""
    return native().library is not None and (native().parallel or torch.get_num_threads() == 1)


class Run:
    """Layers one after the other that the kernel takes together: convolutions, linear layers behind them, ReLUs.

    Linear layers by themselves are left to torch, which is as good at them.
    """

    def __init__(self) -> None:
        self._modules: list[nn.Module] = []
        self._holders: list[nn.Module] = []  # of weight and bias
        self._layers: list[Layer] = []
        self._from: tuple[int, ...] = ()
        self._to: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._layers)

    def take(self, module: nn.Module) -> bool:
        """Take this module, unless it cannot come next."""
        taken = self._fits(module)
        if taken:
            self._modules.append(module)
        return taken

    def _fits(self, module: nn.Module) -> bool:
        if isinstance(module, nn.ReLU):
            return self._take_relu()
        if isinstance(module, nn.Flatten):
            return self._take_flatten(module)
        if isinstance(module, SameConv | SameConvTranspose):
            sizes = module.size, module.out
            return self._take(module.convolution, module.geometry, isinstance(module, SameConvTranspose), *sizes)
        if isinstance(module, Pointwise):
            return self._take(module, module.geometry, False, (1,), (1,))
        if (
            isinstance(module, nn.Linear)
            and self._to == (module.in_features,)
            and module.weight.numel() <= _MOST_LINEAR
        ):
            return self._take(module, self._linear(module), False, (), ())
        return False

    def _take(
        self, holder: nn.Module, geometry: Convolution, lengthens: bool, size: tuple[int, ...], out: tuple[int, ...]
    ) -> bool:
        layer = Layer(geometry, lengthens, relu=False)
        if not geometry.possible or holder.bias is None or not self._continues(layer, len(size)):
            return False
        if not self._layers:
            self._from = (layer.input_shape[2], *size)
        self._to = (layer.output_shape[2], *out)
        self._holders.append(holder)
        self._layers.append(layer)
        return True

    def _continues(self, layer: Layer, dimensions: int) -> bool:
        """Whether it takes what the last one makes; signals with room around them come from outside or go there."""
        if not self._layers:
            return True
        last = self._layers[-1]
        alike = last.output_shape == layer.input_shape and len(self._to) == 1 + dimensions
        flattened = dimensions == 0
        return (alike or flattened) and last.gradient_room == (0, 0) and layer.room == (0, 0)

    def _take_relu(self) -> bool:
        if not self._layers or self._layers[-1].relu:
            return False
        self._layers[-1] = replace(self._layers[-1], relu=True)
        return True

    def _take_flatten(self, module: nn.Flatten) -> bool:
        if not self._layers or (module.start_dim, module.end_dim) != (1, -1):
            return False
        self._to = (math.prod(self._to),)
        return True

    def _linear(self, module: nn.Linear) -> Convolution:
        """As a convolution whose kernel covers everything: its weights lie in the same order."""
        rows, columns, channels = self._layers[-1].output_shape
        axes = [Axis(size, 1, size, 1, 0) for size in (rows, columns)]
        return Convolution.of(axes, channels, module.out_features)

    @cached_property
    def programs(self) -> Programs:
        """For the kernel."""
        return Programs(self._layers)

    def __call__(self, x: Tensor) -> Tensor:
        """(M, C, *size) to (M, N, *size'); what the kernel was not made for goes through the modules, one by one."""
        parameters = cast(list[Tensor], [p for holder in self._holders for p in (holder.weight, holder.bias)])
        if x.shape[1:] != self._from or not all(_is_plain(tensor) for tensor in (x, *parameters)):
            for module in self._modules:
                x = module(x)
            return x
        y: Tensor = _Convolutions.apply(x, self.programs, self._to, *parameters)  # type: ignore[no-untyped-call]
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
        ctx.save_for_backward(y if programs.layers[-1].relu else y.new_empty(0), scratch, *weights)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        programs: Programs = ctx.programs
        y, signals, *weights = ctx.saved_tensors
        gradient, size, threads = gradient.contiguous(), len(gradient), threads_for(len(gradient))
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
