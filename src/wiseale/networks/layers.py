"""Layers with TensorFlow's SAME padding, which the paper's networks use, in one or two dimensions; initial weights.

Strided: out = ceil(in / stride), padded with ``max((out − 1)·stride + kernel − in, 0)`` zeros; half of them, rounded
down, go to the left. Transposed: out = in · stride; the full result is cropped by ``max(kernel − stride, 0)``; half of
that, rounded down, on the left.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Init = Literal["glorot", "he", "torch", "wae"]

_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d)
_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, *_TRANSPOSED)


def same_size(size: tuple[int, ...], stride: int) -> tuple[int, ...]:
    """Spatial size after a strided SAME convolution."""
    return tuple(math.ceil(n / stride) for n in size)


class Pointwise(nn.Conv1d):
    """A convolution of kernel 1 on signals of length 1, computed as a linear layer."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        """(M, inputs, 1) to (M, outputs, 1)."""
        return F.linear(x.squeeze(2), self.weight.squeeze(2), self.bias).unsqueeze(2)


class SameConv(nn.Module):
    """A strided convolution of (M, inputs, *size) to (M, outputs, *ceil(size / stride)).

    Attributes:
        size, out: spatial size of the input and of the output.
        padding: zeros to the left of (above) the input, for each axis.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, size: tuple[int, ...]) -> None:
        super().__init__()
        self.size, self.out = size, same_size(size, stride)
        totals = [max((o - 1) * stride + kernel - n, 0) for o, n in zip(self.out, size, strict=True)]
        self.padding = tuple(total // 2 for total in totals)
        even = all(total % 2 == 0 for total in totals)
        # torch's convolution pads both sides equally, which spares a copy of the input; F.pad does the rest.
        inside = self.padding if even else (0,) * len(size)
        # F.pad takes the last axis first.
        self.outside = [] if even else [side for total in reversed(totals) for side in (total // 2, total - total // 2)]
        convolution = (nn.Conv1d, nn.Conv2d)[len(size) - 1]
        self.convolution = convolution(inputs, outputs, kernel, stride, padding=inside)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """Pad and convolve."""
        return self.convolution(F.pad(x, self.outside) if self.outside else x)  # type: ignore[no-any-return]


class SameConvTranspose(nn.Module):
    """A transposed convolution of (M, inputs, *size) to (M, outputs, *size · stride), cropped on the right to ``out``.

    Attributes:
        size, out: spatial size of the input and of the output.
        padding: positions of the full result cropped on the left (above), for each axis.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        stride: int,
        size: tuple[int, ...],
        out: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        self.size, self.out = size, out or tuple(n * stride for n in size)
        missing = max(stride - kernel, 0)
        convolution = (nn.ConvTranspose1d, nn.ConvTranspose2d)[len(size) - 1]
        left = max(kernel - stride, 0) // 2
        self.padding = (left,) * len(size)
        self.convolution = convolution(inputs, outputs, kernel, stride, padding=left, output_padding=missing)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve, then crop on the right."""
        full: Tensor = self.convolution(x)
        for axis, length in enumerate(self.out, start=2):
            if full.shape[axis] != length:
                full = full.narrow(axis, 0, length)
        return full


@torch.no_grad()
def initialise(network: nn.Module, init: Init) -> None:
    """Draw the weights of every linear and convolutional layer anew; all biases become 0.

    ==========  ==============================================================================
    ``glorot``  U(−a, a) with a² = 6 / (fan_in + fan_out): TensorFlow's default, Glorot & Bengio 2010
    ``he``      N(0, 2 / fan_in), for layers followed by ReLU, He et al. 2015
    ``wae``     N(0, 0.01²), as in the authors' code of the Wasserstein auto-encoder
    ``torch``   PyTorch's defaults: nothing is drawn, biases keep their draws
    ==========  ==============================================================================
    """
    if init == "torch":
        return
    for layer in network.modules():
        if isinstance(layer, _LAYERS) and not layer.weight.is_meta:
            _draw(layer, init)
            if layer.bias is not None:
                layer.bias.zero_()


def _draw(layer: nn.Module, init: Init) -> None:
    assert isinstance(layer, _LAYERS)
    weight: Tensor = layer.weight
    if init == "glorot":
        nn.init.xavier_uniform_(weight)
    elif init == "wae":
        weight.normal_(0, 0.01)
    elif isinstance(layer, _TRANSPOSED):  # of stride s: an output is the weighted sum of 1/s of the kernel's inputs
        sides = zip(layer.kernel_size, layer.stride, strict=True)
        weight.normal_(0, math.sqrt(2 / (weight.shape[0] * math.prod(k / s for k, s in sides))))
    else:
        weight.normal_(0, math.sqrt(2 / weight[0].numel()))


@torch.no_grad()
def zero_last_layer(network: nn.Module) -> None:
    """Make the last layer with weights return 0, so that the network adds nothing until it is trained."""
    last = [layer for layer in network.modules() if isinstance(getattr(layer, "weight", None), Tensor)][-1]
    for parameter in last.parameters():
        parameter.zero_()
