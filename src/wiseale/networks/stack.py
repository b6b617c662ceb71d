"""A sequence of layers in which the kernels train chains of convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import cast

import torch
from torch import Tensor, nn

from wiseale.kernels import conv, derivatives
from wiseale.networks.layers import Pointwise, SameConv, SameConvTranspose

_MIN_ROWS = 8  # of a batch: with fewer, the kernels' tiles are not full and torch is as fast
_MAX_LINEAR = 1 << 16  # entries of a linear layer's weight: torch multiplies larger ones faster


class Stack(nn.Sequential):
    """``nn.Sequential``, names of parameters included; faster where a CPU trains convolutions.

    There each chain of convolutions and their ReLUs is one autograd function (:class:`wiseale.kernels.conv.Chain`),
    whose gradient can be taken once, not twice. Everywhere else (no gradient, GPU, other precision, small batch,
    export, ``torch.compile``, no kernels) the layers are called one by one.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Apply every layer."""
        if not _trains_on_cpu(x):
            return super().forward(x)  # type: ignore[no-any-return, no-untyped-call]
        for part in self.parts():
            x = part(x)
        return x

    def parts(self) -> list[nn.Module | FusedLayers]:
        """The layers, fused where the kernels support it; determined again if a layer was replaced."""
        layers = tuple(self)
        if self.__dict__.get("_layers_of_parts") != layers:
            self._layers_of_parts, self._parts = layers, list(_parts(layers))
        return self._parts


def _trains_on_cpu(x: Tensor) -> bool:
    if torch.compiler.is_compiling() or torch.compiler.is_exporting() or torch._C._get_tracing_state() is not None:
        return False  # checked first: in a graph the number of rows is a symbol and cannot be compared
    if derivatives.in_transform():
        return False
    float32 = _is_float32_on_cpu(x) and not torch.is_autocast_enabled("cpu")
    return float32 and torch.is_grad_enabled() and len(x) >= _MIN_ROWS and conv.usable()


def _is_float32_on_cpu(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype == torch.float32


class FusedLayers:
    """Neighbouring layers that the kernels run as one chain: convolutions, ReLUs, and linear layers behind them.

    Linear layers alone are left to torch, which is as fast at them.
    """

    def __init__(self) -> None:
        self._modules: list[nn.Module] = []
        self._owners: list[nn.Module] = []  # of weight and bias
        self._layers: list[conv.Layer] = []
        self._input: tuple[int, ...] = ()  # (channels, *size)
        self._output: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._layers)

    def append(self, module: nn.Module) -> bool:
        """Add a module; False if it cannot be fused with those before it."""
        added = self._append(module)
        if added:
            self._modules.append(module)
        return added

    def _append(self, module: nn.Module) -> bool:
        if isinstance(module, nn.ReLU):
            return self._append_relu()
        if isinstance(module, nn.Flatten):
            return self._append_flatten(module)
        if isinstance(module, SameConv | SameConvTranspose):
            transposed = isinstance(module, SameConvTranspose)
            return self._append_layer(
                module.convolution, conv.Layer(_geometry(module), transposed), module.size, module.out
            )
        if isinstance(module, Pointwise):
            geometry = conv.Convolution.from_axes([conv.Axis(1, 1, 1, 1, 0)], module.in_channels, module.out_channels)
            return self._append_layer(module, conv.Layer(geometry, transposed=False), (1,), (1,))
        if (
            isinstance(module, nn.Linear)
            and self._output == (module.in_features,)
            and module.weight.numel() <= _MAX_LINEAR
        ):
            return self._append_layer(module, conv.Layer(self._linear(module), transposed=False), (), ())
        return False

    def _append_layer(self, owner: nn.Module, layer: conv.Layer, size: tuple[int, ...], out: tuple[int, ...]) -> bool:
        if not layer.geometry.supported or owner.bias is None or not self._continues(layer, len(size)):
            return False
        if not self._layers:
            self._input = (layer.input_shape[2], *size)
        self._output = (layer.output_shape[2], *out)
        self._owners.append(owner)
        self._layers.append(layer)
        return True

    def _continues(self, layer: conv.Layer, dimensions: int) -> bool:
        """Whether the layer takes what the last one returns; row padding is possible only at the ends of a chain."""
        if not self._layers:
            return True
        last = self._layers[-1]
        same_shape = last.output_shape == layer.input_shape and len(self._output) == 1 + dimensions
        flattened = dimensions == 0
        return (same_shape or flattened) and last.gradient_row_padding == (0, 0) and layer.input_row_padding == (0, 0)

    def _append_relu(self) -> bool:
        if not self._layers or self._layers[-1].relu:
            return False
        self._layers[-1] = replace(self._layers[-1], relu=True)
        return True

    def _append_flatten(self, module: nn.Flatten) -> bool:
        if not self._layers or (module.start_dim, module.end_dim) != (1, -1):
            return False
        self._output = (math.prod(self._output),)
        return True

    def _linear(self, module: nn.Linear) -> conv.Convolution:
        """A linear layer as a convolution whose kernel covers the whole signal: its weights have the same order."""
        rows, columns, channels = self._layers[-1].output_shape
        axes = [conv.Axis(size, 1, size, 1, 0) for size in (rows, columns)]
        return conv.Convolution.from_axes(axes, channels, module.out_features)

    @cached_property
    def _chain(self) -> conv.Chain:
        return conv.Chain(self._layers, self._output)

    def __call__(self, x: Tensor) -> Tensor:
        """(M, C, *size) to (M, C', *size'); inputs and weights of other shapes or types go through torch's modules."""
        parameters = cast(list[Tensor], [p for owner in self._owners for p in (owner.weight, owner.bias)])
        if x.shape[1:] != self._input or not all(_is_float32_on_cpu(tensor) for tensor in (x, *parameters)):
            for module in self._modules:
                x = module(x)
            return x
        return self._chain(x, *parameters)


def _geometry(module: SameConv | SameConvTranspose) -> conv.Convolution:
    """The kernels' description of a layer, from its own sizes; of a transposed one, that of its adjoint."""
    layer = module.convolution
    kernel, stride = layer.kernel_size[0], layer.stride[0]
    inputs, outputs = (module.size, layer.in_channels), (module.out, layer.out_channels)
    (large, channels), (small, out_channels) = (
        (outputs, inputs) if isinstance(module, SameConvTranspose) else (inputs, outputs)
    )
    sizes = zip(large, small, module.padding, strict=True)
    axes = [conv.Axis(n, out, kernel, stride, padding) for n, out, padding in sizes]
    return conv.Convolution.from_axes(axes, channels, out_channels)


def _parts(layers: tuple[nn.Module, ...]) -> Iterator[nn.Module | FusedLayers]:
    """The layers in order, neighbours fused where possible."""
    fused = FusedLayers()
    for layer in layers:
        if fused.append(layer):
            continue
        if fused:
            yield fused
            fused = FusedLayers()
        if not fused.append(layer):
            yield layer
    if fused:
        yield fused
