"""One-dimensional convolutions as stride-1 convolutions of blocks: the same sums, arranged for a CPU.

A signal kept channels-last, (M, length, channels), is also one of ``length / stride`` blocks with ``stride · channels``
features, without copying. On blocks a strided convolution has stride 1, and a transposed one writes whole blocks, so
both become the convolution that CPU libraries compute best, the gradient of the weights above all
(``docs/performance.md``). Results equal torch's up to rounding.

Tensors have torch's logical shapes (M, channels, length) throughout; only their strides are channels-last.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def suits_blocks(x: Tensor) -> bool:
    """Whether block convolutions are worth it here: float32 on a CPU, with a gradient, and no graph is recorded."""
    eager = not (torch.compiler.is_compiling() or torch.compiler.is_exporting())
    return x.device.type == "cpu" and x.dtype == torch.float32 and torch.is_grad_enabled() and eager


def block_conv1d(x: Tensor, weight: Tensor, bias: Tensor, stride: int, left: int, right: int) -> Tensor:
    """``F.conv1d`` of x padded with zeros; the kernel's length must be a multiple of the stride.

    Shapes: x (M, C, L), weight (N, C, K), padded length a multiple of the stride; returns (M, N, L').
    """
    outputs, inputs, kernel = weight.shape
    signal = F.pad(x.transpose(1, 2), (0, 0, left, right))
    blocks = signal.reshape(len(x), 1, -1, stride * inputs).permute(0, 3, 1, 2)
    taps = weight.view(outputs, inputs, kernel // stride, stride).permute(0, 3, 1, 2)
    return F.conv2d(blocks, taps.reshape(outputs, stride * inputs, 1, -1), bias).squeeze(2)


def block_conv_transpose1d(x: Tensor, weight: Tensor, bias: Tensor, stride: int, left: int) -> Tensor:
    """``F.conv_transpose1d`` cropped by ``left`` in front and to ``L · stride`` behind.

    Output block b, phase r, is the sum over input positions i near b of ``x[i] · weight[r + left + (b − i)·stride]``:
    a convolution whose kernel, padded with zeros, spans the inputs that reach a block.

    Shapes: x (M, C, L), weight (C, N, K) with K ≥ stride; returns (M, N, L · stride).
    """
    inputs, outputs, kernel = weight.shape
    length = x.shape[2]
    before = min((kernel - 1 - left) // stride, length - 1)  # how far to the left of its block an input can lie
    after = min((left + stride - 1) // stride, length - 1)
    span = before + 1 + after
    front = after * stride - left
    padded = F.pad(weight, (front, span * stride - front - kernel))  # negative where all inputs are near
    taps = padded.view(inputs, outputs, span, stride).flip(2).permute(3, 1, 0, 2)
    taps = taps.reshape(stride * outputs, inputs, 1, span)
    every_phase = bias.repeat(stride)
    if length == 1:
        blocks = F.linear(x.flatten(1), taps.flatten(1), every_phase)
    else:
        signal = F.pad(x.transpose(1, 2), (0, 0, before, after))[:, None].permute(0, 3, 1, 2)
        blocks = F.conv2d(signal, taps, every_phase).permute(0, 2, 3, 1)
    return blocks.reshape(len(x), length * stride, outputs).transpose(1, 2)
