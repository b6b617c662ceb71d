"""Chains of convolutions, transposed convolutions and ReLUs that C runs as one differentiable function."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from wiseale.kernels import build, derivatives
from wiseale.kernels.geometry import Axis, Convolution
from wiseale.kernels.layout import SAMPLES
from wiseale.kernels.programs import Layer, Programs

__all__ = ["Axis", "Chain", "Convolution", "Layer", "usable"]


def usable() -> bool:
    """Whether chains can run now: the kernels are available, and for as many threads as torch uses."""
    kernels = build.kernels()
    return kernels.library is not None and (kernels.parallel or torch.get_num_threads() == 1)


class Chain:
    """Layers run one after the other by C, a few samples at a time through all of them.

    Args:
        layers: each takes what the one before returns; only the first may have row padding in its input, only the last
            in the gradient of its output.
        shape: (channels, *size) of the output.
    """

    def __init__(self, layers: Sequence[Layer], shape: tuple[int, ...]) -> None:
        self._layers, self.shape = layers, shape

    @cached_property
    def programs(self) -> Programs:
        """The operations, listed when they are first needed."""
        return Programs(self._layers)

    def __call__(self, x: Tensor, *parameters: Tensor) -> Tensor:
        """(M, C, *size) to (M, *shape), differentiable once; parameters: weight and bias of every layer in turn.

        All tensors must be float32 on the CPU, and of the shapes of the layers: C does not check.
        """
        y: Tensor = _Chain.apply(x, self, *parameters)  # type: ignore[no-untyped-call]
        return y


class _Chain(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, chain: Chain, *parameters: Tensor) -> Tensor:
        x, parameters = x.contiguous(), tuple(p.contiguous() for p in parameters)
        programs, size, weights, biases = chain.programs, len(x), parameters[::2], parameters[1::2]
        y, scratch = x.new_empty(size, *chain.shape), x.new_empty(programs.scratch.floats(size))
        addresses = [tensor.data_ptr() for tensor in (x, y, *weights, *biases)]
        programs.forward([addresses + programs.scratch.addresses(scratch, size)] * _threads_for(size), size)
        ctx.programs, ctx.x_shape = programs, x.shape
        ctx.save_for_backward(y if programs.layers[-1].relu else y.new_empty(0), scratch, *weights)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        derivatives.refuse("convolutions in C", ", or set WISEALE_NATIVE=0")
        programs: Programs = ctx.programs
        y, signals, *weights = ctx.saved_tensors
        grad, size = grad.contiguous(), len(grad)
        scratch = y.new_empty(programs.gradient_scratch.floats(size))
        grad_x = y.new_empty(ctx.x_shape) if ctx.needs_input_grad[0] else None
        grad_weights = [torch.empty_like(weight) for weight in weights]
        grad_biases = [y.new_empty(channels) for channels in programs.channels]
        partial = [y.new_zeros(programs.partial_gradients.floats(0)) for _ in range(_threads_for(size))]
        shared = [
            *(grad.data_ptr(), y.data_ptr(), 0 if grad_x is None else grad_x.data_ptr()),
            *programs.signal_addresses(signals, size),
            *(tensor.data_ptr() for tensor in (*weights, *grad_weights, *grad_biases)),
            *programs.gradient_scratch.addresses(scratch, size),
        ]
        program = programs.backward if grad_x is None else programs.backward_to_input
        program([shared + programs.partial_gradients.addresses(own, 0) for own in partial], size)
        return grad_x, None, *(part for pair in zip(grad_weights, grad_biases, strict=True) for part in pair)


def _threads_for(samples: int) -> int:
    """Threads that share the samples: torch's, but no more than there are batch tiles."""
    return min(torch.get_num_threads(), -(-samples // SAMPLES))
