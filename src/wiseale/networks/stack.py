"""Layers in sequence, whose runs of convolutions are trained as one function of batch-minor signals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from wiseale.networks.same_padding import SameConv, SameConvTranspose
from wiseale.networks.windows import Link, with_room

_FEWEST_ROWS = 16  # of a batch, below which the products are too narrow


class Stack(nn.Sequential):
    """``nn.Sequential``, names of parameters included; faster where a CPU trains long one-dimensional kernels.

    With the paper's sine network that is 1.4 times; with shorter kernels and more channels torch's own layers are the
    faster ones. Each run of convolutions and their ReLUs is then one autograd function: signals stay batch-minor
    between its layers, every layer writes where the next one reads, and the gradient is written out; it can be taken
    once, not twice. Elsewhere, and where a graph is being recorded, the layers are called one by one.
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
    """Whether runs are worth it: float32 on a CPU, with a gradient, enough rows, and no graph is recorded."""
    if torch.compiler.is_compiling() or torch.compiler.is_exporting():  # first: then the number of rows is a symbol
        return False
    plain = x.device.type == "cpu" and x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    return plain and torch.is_grad_enabled() and len(x) >= _FEWEST_ROWS


class Run:
    """Convolutions one after the other, with the ReLUs that follow them."""

    def __init__(self) -> None:
        self.layers: list[SameConv | SameConvTranspose] = []
        self.links: list[Link] = []
        self.relu: list[bool] = []

    def __call__(self, x: Tensor) -> Tensor:
        """(M, C, L) to (M, N, L')."""
        parameters = [p for layer in self.layers for p in (layer.convolution.weight, layer.convolution.bias)]
        y: Tensor = _Convolutions.apply(x, self.links, self.relu, *parameters)  # type: ignore[no-untyped-call]
        return y


class _Convolutions(torch.autograd.Function):
    """(M, C, L) to (M, N, L') through all links."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, links: list[Link], relu: list[bool], *parameters: Tensor) -> Tensor:
        weights, biases = parameters[::2], parameters[1::2]
        size, channels, length = x.shape
        signal, inside = with_room(x, links[0].room, length, channels, size)
        inside.copy_(x.permute(2, 1, 0))
        signals = [signal]
        rooms = [*(link.room for link in links[1:]), (0, 0)]
        for link, room, weight, bias, cut in zip(links, rooms, weights, biases, relu, strict=True):
            signal, inside = with_room(x, room, link.made, len(bias), size)
            link.forward(signals[-1], weight, inside).add_(bias[:, None])
            if cut:
                inside.relu_()
            signals.append(signal)
        ctx.links, ctx.rooms, ctx.relu = links, rooms, relu
        ctx.save_for_backward(*weights, *signals)
        return signal.permute(2, 1, 0).contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        count = len(ctx.links)
        weights, signals = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        arriving: Tensor | None = gradient.permute(2, 1, 0)
        to_parameters: list[Tensor] = []
        for i in reversed(range(count)):
            assert arriving is not None
            link, before = ctx.links[i], ctx.rooms[i][0]
            gradient, inside = with_room(arriving, link.gradient_room, *arriving.shape)
            if ctx.relu[i]:
                output = signals[i + 1][before : before + link.made]
                torch.ops.aten.threshold_backward.grad_input(arriving, output, 0, grad_input=inside)
            else:
                inside.copy_(arriving)
            to_parameters += [inside.sum((0, 2)), link.to_weight(signals[i], gradient)]
            arriving = link.to_input(gradient, weights[i]) if i or ctx.needs_input_grad[0] else None
        to_x = None if arriving is None else arriving.permute(2, 1, 0)
        return to_x, None, None, *reversed(to_parameters)


def _parts(layers: tuple[nn.Module, ...]) -> Iterator[nn.Module | Run]:
    """The layers in order, convolutions that have links, and their ReLUs, taken together."""
    run = Run()
    for layer in layers:
        if isinstance(layer, SameConv | SameConvTranspose) and layer.link is not None:
            run.layers.append(layer)
            run.links.append(layer.link)
            run.relu.append(False)
        elif isinstance(layer, nn.ReLU) and run.relu and not run.relu[-1]:
            run.relu[-1] = True
        else:
            if run.layers:
                yield run
                run = Run()
            yield layer
    if run.layers:
        yield run
