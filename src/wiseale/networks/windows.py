"""One-dimensional convolutions as products with windows of a signal: the same sums, arranged for a CPU.

Stored batch-minor, as (length, channels, M), the stretch of a signal under a kernel is one contiguous block, and the
stretches under all of the kernel's places overlap in memory without being copied: a convolution is one batched matrix
product. So is its adjoint, the transposed convolution, which makes blocks of ``stride`` outputs from the window of
inputs that reach them, and so are the gradients of both. Such products run nearly at the speed of a large matrix
product and share their work among threads (``docs/performance.md``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

Room = tuple[int, int]
"""Zeros wanted before and after a signal."""

_FEW_ENTRIES = 1 << 10  # of a weight, up to which the products whose sum is its gradient are made at once ...
_HELD_ENTRIES = 1 << 20  # ... and those of a larger one too where threads share them, if they are no more than this


@dataclass(frozen=True)
class Windows:
    """A convolution from ``long`` positions to ``short`` ones, and its adjoint.

    Position i of the short side meets positions ``i · stride − left`` to ``i · stride − left + kernel`` of the long
    one; what lies outside is zero. The weight is (channels of the short side, channels of the long side, kernel): torch
    keeps it so for both kinds of convolution. Signals come with ``long_room`` or ``short_room`` zeros around them.
    """

    long: int
    short: int
    kernel: int
    stride: int
    left: int

    @cached_property
    def long_room(self) -> Room:
        """Zeros wanted around a long signal."""
        return self.left, max((self.short - 1) * self.stride + self.kernel - self.left - self.long, 0)

    @cached_property
    def short_room(self) -> Room:
        """Zeros wanted around a short signal."""
        before, after = self._reach
        return before, max(self._blocks - self.short + after, 0)

    @cached_property
    def _blocks(self) -> int:
        return -(-self.long // self.stride)

    @cached_property
    def _reach(self) -> tuple[int, int]:
        """How far before and after a block of ``stride`` long positions a short one can lie that meets it."""
        before = min((self.kernel - 1 - self.left) // self.stride, self._blocks - 1)
        after = min((self.left + self.stride - 1) // self.stride, self.short - 1)
        return before, after

    def shorten(self, signal: Tensor, weight: Tensor, out: Tensor | None = None) -> Tensor:
        """The convolution: (room + long, C, M) to (short, N, M)."""
        taps = weight.transpose(1, 2).flatten(1)
        windows = _windows(signal, self.short, self.stride, self.kernel)
        product: Tensor = torch.bmm(taps.expand(self.short, -1, -1), windows, out=out)
        return product

    def lengthen(self, signal: Tensor, weight: Tensor, out: Tensor | None = None) -> Tensor:
        """The adjoint: (room + short, N, M) to (long, C, M)."""
        taps = self._block_taps(weight)
        windows = _windows(signal, self._blocks, 1, sum(self._reach) + 1)
        whole = out is not None and len(out) == self._blocks * self.stride
        into = out.view(self._blocks, len(taps), -1) if out is not None and whole else None
        blocks = torch.bmm(taps.expand(self._blocks, -1, -1), windows, out=into)
        made: Tensor = blocks.view(self._blocks * self.stride, weight.shape[1], -1)[: self.long]
        return made if out is None or whole else out.copy_(made)

    def weight_gradient(self, short: Tensor, long: Tensor) -> Tensor:
        """Σ_i short[i] · window_i(long)ᵀ; only the long signal has room around it."""
        outputs, inputs = short.shape[1], long.shape[1]
        windows = _windows(long, self.short, self.stride, self.kernel).transpose(1, 2)
        entries = outputs * self.kernel * inputs
        at_once = entries <= _FEW_ENTRIES or torch.get_num_threads() > 1
        if at_once and entries * self.short <= _HELD_ENTRIES:
            total = torch.bmm(short, windows).sum(0)
        else:
            total = torch.addbmm(short.new_empty(outputs, self.kernel * inputs), short, windows, beta=0)
        return total.view(outputs, self.kernel, inputs).transpose(1, 2).clone(memory_format=torch.contiguous_format)

    def _block_taps(self, weight: Tensor) -> Tensor:
        """What a block's window is multiplied by: (stride · C, reach · N), zero where a position does not meet it."""
        inputs, outputs, _ = weight.shape
        index = _block_index(self, inputs, outputs)
        return F.pad(weight.reshape(-1), (0, 1)).index_select(0, index).view(self.stride * outputs, -1)


@lru_cache(maxsize=256)
def _block_index(windows: Windows, inputs: int, outputs: int) -> Tensor:
    """Where in the flat weight (or right behind it, for zero) each of a block's taps is found."""
    before, after = windows._reach
    phase = torch.arange(windows.stride).view(-1, 1, 1, 1)
    output = torch.arange(outputs).view(-1, 1, 1)
    offset = torch.arange(-before, after + 1).view(-1, 1)
    tap = phase + windows.left - offset * windows.stride
    place = (torch.arange(inputs) * outputs + output) * windows.kernel + tap
    outside = (tap < 0) | (tap >= windows.kernel)
    return place.masked_fill(outside, inputs * outputs * windows.kernel).flatten()


def _windows(signal: Tensor, count: int, stride: int, width: int) -> Tensor:
    """The stretches [i·stride, i·stride + width) as matrices, (count, width · channels, M), sharing memory."""
    _, channels, size = signal.shape
    return signal.as_strided((count, width * channels, size), (stride * channels * size, size, 1))


@dataclass(frozen=True)
class Link:
    """A convolution, or a transposed one, of batch-minor signals, with its gradients."""

    windows: Windows
    lengthens: bool

    @cached_property
    def made(self) -> int:
        """Positions of the output."""
        return self.windows.long if self.lengthens else self.windows.short

    @cached_property
    def room(self) -> Room:
        """Zeros wanted around the input."""
        return self.windows.short_room if self.lengthens else self.windows.long_room

    @cached_property
    def gradient_room(self) -> Room:
        """Zeros wanted around the gradient of the output."""
        return self.windows.long_room if self.lengthens else self.windows.short_room

    def forward(self, signal: Tensor, weight: Tensor, out: Tensor) -> Tensor:
        """Write the convolution of a signal, which has room around it, to ``out``, which has none."""
        return (self.windows.lengthen if self.lengthens else self.windows.shorten)(signal, weight, out)

    def to_input(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """The input's gradient, from that of the output, which has room around it."""
        return (self.windows.shorten if self.lengthens else self.windows.lengthen)(gradient, weight)

    def to_weight(self, signal: Tensor, gradient: Tensor) -> Tensor:
        """The weight's gradient, from the input and the gradient of the output, both with room around them."""
        short, long = (signal, gradient) if self.lengthens else (gradient, signal)
        before = self.windows.short_room[0]
        return self.windows.weight_gradient(short[before : before + self.windows.short], long)


def with_room(like: Tensor, room: Room, length: int, channels: int, size: int) -> tuple[Tensor, Tensor]:
    """Memory for a signal with zeros around it, and the part between them, which is not yet written."""
    before, after = room
    signal = like.new_empty(before + length + after, channels, size)
    if before:
        signal[:before].zero_()
    if after:
        signal[before + length :].zero_()
    return signal, signal[before : before + length]
