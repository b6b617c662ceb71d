"""Convolutions as tables of small matrix products, for the kernel in :mod:`wiseale.kernels`: the same sums as torch's.

Signals are stored sample by sample, positions in order, channels last. What lies under a kernel is then a few
contiguous stretches, one for each row of an image, and what lies outside the signal is left out of them: no padding is
stored, and no product with zero is computed. A signal of one dimension is an image of one row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wiseale.kernels import BLOCK

Table = npt.NDArray[np.int64]
Span = tuple[int, int]
"""First, and how many."""


class Kind(IntEnum):
    """What an operation does, numbered as in the kernel."""

    PICK = 0
    ENTER = 1
    PRODUCTS = 2
    OUTERS = 3
    SUMS = 4
    LEAVE = 5
    GIVE = 6


class Operation(NamedTuple):
    """One pass over signals, field by field as in the kernel; buffers are numbers, sizes count floats."""

    kind: int
    first: int = 0
    number: int = 0
    a: int = 0
    a_sample: int = 0
    b: int = 0
    b_sample: int = 0
    c: int = 0
    c_sample: int = 0
    width: int = 0
    block: int = 0
    a_row: int = 0
    b_row: int = 0
    a_column: int = 0
    b_column: int = 0
    left: int = 0
    right: int = 0
    height: int = 0
    bias: int = -1
    positive: int = -1
    relu: int = 0


@dataclass(frozen=True)
class Axis:
    """Position i of the short side meets ``i · stride − left`` to ``i · stride − left + kernel`` of the long one."""

    long: int
    short: int
    kernel: int
    stride: int
    left: int

    @property
    def depth(self) -> int:
        """How many short positions meet a long one, at most."""
        return -(-self.kernel // self.stride)

    def padded(self) -> Axis:
        """The same with zeros around the long side, so that every tap lies inside."""
        long = max((self.short - 1) * self.stride + self.kernel, self.left + self.long)
        return replace(self, long=long, left=0)

    def taps_at(self, short: int) -> Span:
        """The taps of a short position that lie inside the long side."""
        start = short * self.stride - self.left
        return _span(max(0, -start), min(self.kernel, self.long - start))

    def short_of_tap(self, tap: int) -> Span:
        """The short positions whose tap lies inside."""
        first = -(-(self.left - tap) // self.stride)
        last = (self.long - 1 + self.left - tap) // self.stride
        return _span(max(0, first), min(self.short, last + 1))

    def short_meeting(self, long: int, positions: int = 1) -> Span:
        """The short positions that meet any of these long ones."""
        first = -(-(long + self.left - self.kernel + 1) // self.stride)
        last = (long + positions - 1 + self.left) // self.stride
        return _span(max(0, first), min(self.short, last + 1))


def _span(first: int, end: int) -> Span:
    return first, max(0, end - first)


@dataclass(frozen=True)
class Convolution:
    """From a long side to a short one, and its adjoint; weights are (short channels, channels, height, width).

    Attributes:
        channels: of the long side.
    """

    height: Axis
    width: Axis
    channels: int
    short_channels: int

    @classmethod
    def of(cls, axes: list[Axis], channels: int, short_channels: int) -> Convolution:
        """Of images, or of signals if there is but one axis."""
        height, width = axes if len(axes) == 2 else (Axis(1, 1, 1, 1, 0), axes[0])
        return cls(height, width, channels, short_channels)

    @property
    def possible(self) -> bool:
        """Whether the kernel's lanes can be filled: by the short side's channels, and by the long side's positions."""
        return self.short_channels % BLOCK == 0 and self.width.long >= self.together

    @cached_property
    def together(self) -> int:
        """Neighbouring long positions computed at once, so that their channels fill lanes; 1 where one's do."""
        return BLOCK // math.gcd(BLOCK, self.channels)

    @cached_property
    def room(self) -> Span:
        """Zeros that ``shorten`` and ``gradient`` want to the left and right of the long side's rows.

        Only where channels are too few to fill a tile, and taps side by side have to.
        """
        if self.together == 1:
            return 0, 0
        return self.width.left, self.width.padded().long - self.width.left - self.width.long

    @cached_property
    def _roomy(self) -> Axis:
        return self.width if self.together == 1 else self.width.padded()

    @cached_property
    def entries(self) -> int:
        """Of the weight."""
        return self.short_channels * self.channels * self.height.kernel * self.width.kernel

    @cached_property
    def long_shape(self) -> tuple[int, int, int]:
        """Rows, columns and channels of the long side, without room."""
        return self.height.long, self.width.long, self.channels

    @cached_property
    def short_shape(self) -> tuple[int, int, int]:
        """Rows, columns and channels of the short side."""
        return self.height.short, self.width.short, self.short_channels

    @cached_property
    def _entries(self) -> Tensor:
        """Where each of the weight's entries lies."""
        shape = (self.short_channels, self.channels, self.height.kernel, self.width.kernel)
        return torch.arange(self.entries).view(shape)

    # From the long side to the short one.

    @cached_property
    def shortening_index(self) -> Tensor:
        """Order of the weight's entries for ``shorten``: (short channels in lanes, row, column, channel, lane)."""
        lanes = self._entries.view(-1, BLOCK, *self._entries.shape[1:])
        return lanes.permute(0, 3, 4, 2, 1).flatten()

    @cached_property
    def gradient_index(self) -> Tensor:
        """Where each entry of the weight is in what ``gradient`` makes."""
        return torch.argsort(self.shortening_index)

    def shorten(self) -> tuple[Operation, Table]:
        """Every short position is a product with what lies under the kernel there."""
        across, width, lanes = self._roomy, self.width.kernel * self.channels, BLOCK
        jobs = []
        for row in range(self.height.short):
            tap, rows = self.height.taps_at(row)
            line = (row * self.height.stride - self.height.left + tap) * across.long
            for column in range(across.short):
                right, columns = across.taps_at(column)
                jobs.append(
                    (
                        (line + column * across.stride - across.left + right) * self.channels,
                        (tap * self.width.kernel + right) * self.channels * lanes,
                        (row * across.short + column) * self.short_channels,
                        *(rows, columns * self.channels),
                    )
                )
        operation = Operation(
            Kind.PRODUCTS,
            width=self.short_channels,
            block=self.height.kernel * width * lanes,
            a_row=across.long * self.channels,
            b_row=width * lanes,
        )
        return operation, np.array(jobs, np.int64)

    # And back.

    @cached_property
    def _reach(self) -> int:
        """Short positions that can meet ``together`` long ones."""
        return self.width.depth + (self.width.stride + self.together - 2) // self.width.stride

    @cached_property
    def _starts(self) -> list[int]:
        """Where ``together`` long positions are computed at once; the last ones may be computed twice."""
        last = self.width.long - self.together
        return sorted({*range(0, last + 1, self.together), last})

    @cached_property
    def _phases(self) -> list[int]:
        """Places of a start relative to the short positions, each with a matrix of its own."""
        return sorted({(start + self.width.left) % self.width.stride for start in self._starts})

    @cached_property
    def lengthening_index(self) -> Tensor:
        """Order of the weight's entries for ``lengthen``, -1 for zero.

        (row phase, column phase, outputs in lanes, row, column, short channel, lane): short positions in their order.
        """
        down, across = self.height, self.width
        row_taps = torch.arange(down.stride)[:, None] + down.stride * torch.arange(down.depth - 1, -1, -1)
        back = across.stride * torch.arange(across.depth - 1, across.depth - 1 - self._reach, -1)
        column_taps = torch.tensor(self._phases)[:, None, None] + back[:, None] + torch.arange(self.together)
        rows, columns = torch.meshgrid(row_taps.flatten(), column_taps.flatten(), indexing="ij")
        outside = (rows >= down.kernel) | (columns < 0) | (columns >= across.kernel)
        found = self._entries[:, :, rows.clamp(max=down.kernel - 1), columns.clamp(0, across.kernel - 1)]
        shape = (self.short_channels, self.channels, *row_taps.shape, *column_taps.shape)
        found = found.masked_fill(outside, -1).view(shape)
        # (short channel, channel, row phase, row, column phase, column, together) to lanes of (together, channel)
        outputs = found.permute(2, 4, 3, 5, 0, 6, 1).flatten(5)
        return outputs.reshape(*outputs.shape[:5], -1, BLOCK).permute(0, 1, 5, 2, 3, 4, 6).flatten()

    def lengthen(self) -> tuple[Operation, Table]:
        """Every long position, or several together, is a product with the short positions that meet it."""
        down, across = self.height, self.width
        width, row_size = self.together * self.channels, self._reach * self.short_channels * BLOCK
        block = down.depth * row_size
        jobs = []
        for row in range(down.long):
            first, rows = down.short_meeting(row)
            base, phase = divmod(row + down.left, down.stride)
            of_row = phase * len(self._phases) * (width // BLOCK) * block + (first - base + down.depth - 1) * row_size
            for start in self._starts:
                left, columns = across.short_meeting(start, self.together)
                base, phase = divmod(start + across.left, across.stride)
                of_phase = self._phases.index(phase) * (width // BLOCK) * block
                jobs.append(
                    (
                        (first * across.short + left) * self.short_channels,
                        of_row + of_phase + (left - base + across.depth - 1) * self.short_channels * BLOCK,
                        (row * across.long + start) * self.channels,
                        *(rows, columns * self.short_channels),
                    )
                )
        operation = Operation(
            Kind.PRODUCTS, width=width, block=block, a_row=across.short * self.short_channels, b_row=row_size
        )
        return operation, np.array(jobs, np.int64)

    # And the weight's gradient.

    def gradient(self) -> tuple[Operation, Table]:
        """Every tap sums outer products over the positions where it lies inside; taps in a row together where few."""
        down, across = self.height, self._roomy
        at_once = 1 if self.together == 1 else across.kernel
        jobs = []
        for tap in range(down.kernel):
            first, rows = down.short_of_tap(tap)
            line = (first * down.stride - down.left + tap) * across.long
            for right in range(0, across.kernel, at_once):
                left, columns = across.short_of_tap(right)
                jobs.append(
                    (
                        (line + left * across.stride - across.left + right) * self.channels,
                        (first * across.short + left) * self.short_channels,
                        (tap * across.kernel + right) * self.channels * BLOCK,
                        *(rows, columns),
                    )
                )
        operation = Operation(
            Kind.OUTERS,
            width=self.short_channels,
            block=down.kernel * across.kernel * self.channels * BLOCK,
            a_row=down.stride * across.long * self.channels,
            a_column=across.stride * self.channels,
            b_row=across.short * self.short_channels,
            b_column=self.short_channels,
            height=at_once * self.channels,
        )
        return operation, np.array(jobs, np.int64)
