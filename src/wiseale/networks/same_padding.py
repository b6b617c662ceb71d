"""Convolutions with TensorFlow's SAME rule, which the paper's networks use, in one or two dimensions.

Strided: out = ceil(in / stride), padded with ``max((out − 1)·stride + kernel − in, 0)`` zeros, the extra one on the
right. Transposed: out = in · stride, the full result cropped by ``max(kernel − stride, 0)``, the left half floored.
"""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn import functional as F

from wiseale.kernels.geometry import Axis, Convolution


def same_size(size: tuple[int, ...], stride: int) -> tuple[int, ...]:
    """Spatial size after a strided SAME convolution."""
    return tuple(math.ceil(n / stride) for n in size)


class Pointwise(nn.Conv1d):
    """A convolution of kernel 1 on signals of length 1: a linear layer under a convolution's name and shapes.

    Attributes:
        geometry: as in :class:`SameConv`.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 1)
        self.geometry = Convolution.of([Axis(1, 1, 1, 1, 0)], inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(M, inputs, 1) to (M, outputs, 1)."""
        return F.linear(x.squeeze(2), self.weight.squeeze(2), self.bias).unsqueeze(2)


class SameConv(nn.Module):
    """A strided convolution of inputs whose spatial size is known when it is built: (M, channels, *size).

    Attributes:
        size, out: spatial size of the input and of the output.
        geometry: for another way to train it on a CPU, which :class:`~wiseale.networks.stack.Stack` takes.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, size: tuple[int, ...]) -> None:
        super().__init__()
        self.size, self.out = size, same_size(size, stride)
        totals = [max((o - 1) * stride + kernel - n, 0) for o, n in zip(self.out, size, strict=True)]
        even = all(total % 2 == 0 for total in totals)
        # The convolution pads by itself where both sides are equal, which spares a copy of the input.
        inside = tuple(total // 2 for total in totals) if even else (0,) * len(size)
        # F.pad wants the last axis first.
        self.outside = [] if even else [side for total in reversed(totals) for side in (total // 2, total - total // 2)]
        convolution = (nn.Conv1d, nn.Conv2d)[len(size) - 1]
        self.convolution = convolution(inputs, outputs, kernel, stride, padding=inside)  # type: ignore[arg-type]
        lefts = [total // 2 for total in totals]
        axes = [Axis(n, o, kernel, stride, left) for n, o, left in zip(size, self.out, lefts, strict=True)]
        self.geometry = Convolution.of(axes, inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve."""
        return self.convolution(F.pad(x, self.outside) if self.outside else x)  # type: ignore[no-any-return]


class SameConvTranspose(nn.Module):
    """A transposed convolution of (M, channels, *size) to ``size · stride``, or cropped on the right to ``out``.

    Attributes:
        geometry: as in :class:`SameConv`.
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
        self.convolution = convolution(inputs, outputs, kernel, stride, padding=left, output_padding=missing)
        axes = [Axis(o, n, kernel, stride, left) for n, o in zip(size, self.out, strict=True)]
        self.geometry = Convolution.of(axes, outputs, inputs)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve, then drop what is left over on the right."""
        full: Tensor = self.convolution(x)
        for axis, length in enumerate(self.out, start=2):
            if full.shape[axis] != length:
                full = full.narrow(axis, 0, length)
        return full
