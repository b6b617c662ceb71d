"""Convolutions as tables of small matrix products, which the loops in conv.c follow: the same sums as torch's.

Signals are stored channels last (NHWC). The inputs under a kernel are then a few contiguous segments, one for each row
of the kernel; positions outside the signal are left out of them, so that no padding is stored and no product with zero
is computed. A 1-D signal is an image of one row. README.md takes one layer through these tables by hand.

A transposed convolution is described by the convolution whose adjoint it is: ``input`` and ``output`` always mean the
input and output of that convolution, and the transposed one maps ``output`` to ``input``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wiseale.kernels.layout import BLOCK, Kind, MatrixProduct, Operation, OuterProduct

Table = npt.NDArray[np.void]
"""Records of type MatrixProduct or OuterProduct."""

Span = tuple[int, int]
"""(first, count): a range of neighbouring positions or taps."""


@dataclass(frozen=True)
class Axis:
    """One spatial axis: output i is computed from the inputs ``i·stride − padding`` to ``… + kernel − 1``.

    ``padding`` zeros are in front of the input; as many as needed are assumed behind it.
    """

    input: int
    output: int
    kernel: int
    stride: int
    padding: int

    @property
    def overlap(self) -> int:
        """Outputs that one input contributes to, at most."""
        return -(-self.kernel // self.stride)

    def with_stored_padding(self) -> Axis:
        """The same axis with the padding counted as input, so that every tap lies inside."""
        size = max((self.output - 1) * self.stride + self.kernel, self.padding + self.input)
        return replace(self, input=size, padding=0)

    def taps_inside(self, output: int) -> Span:
        """The taps of this output that lie inside the input."""
        start = output * self.stride - self.padding
        return _span(max(0, -start), min(self.kernel, self.input - start))

    def outputs_of_tap(self, tap: int) -> Span:
        """The outputs whose tap lies inside the input."""
        first = -(-(self.padding - tap) // self.stride)
        last = (self.input - 1 + self.padding - tap) // self.stride
        return _span(max(0, first), min(self.output, last + 1))

    def outputs_of_inputs(self, first_input: int, count: int = 1) -> Span:
        """The outputs that any of these neighbouring inputs contributes to."""
        first = -(-(first_input + self.padding - self.kernel + 1) // self.stride)
        last = (first_input + count - 1 + self.padding) // self.stride
        return _span(max(0, first), min(self.output, last + 1))


def _span(first: int, end: int) -> Span:
    return first, max(0, end - first)


@dataclass(frozen=True)
class Convolution:
    """A convolution, its adjoint and its weight's gradient; weights are (outputs, inputs, kernel height, kernel width).

    ``inputs`` and ``outputs`` are numbers of channels.
    """

    height: Axis
    width: Axis
    inputs: int
    outputs: int

    @classmethod
    def from_axes(cls, axes: list[Axis], inputs: int, outputs: int) -> Convolution:
        """Of images, or of signals if there is one axis."""
        height, width = axes if len(axes) == 2 else (Axis(1, 1, 1, 1, 0), axes[0])
        return cls(height, width, inputs, outputs)

    @property
    def supported(self) -> bool:
        """Whether channel blocks can be filled: by the output channels, and by neighbouring input positions."""
        return self.outputs % BLOCK == 0 and self.width.input >= self.group

    @cached_property
    def group(self) -> int:
        """Neighbouring input positions whose channels together fill whole channel blocks; 1 where one position's do."""
        return BLOCK // math.gcd(BLOCK, self.inputs)

    @cached_property
    def row_padding(self) -> Span:
        """Zeros stored to the left and right of every input row.

        Only where the input channels do not fill a block: then all taps of a kernel row are read as one segment.
        """
        if self.group == 1:
            return 0, 0
        return self.width.padding, self.width.with_stored_padding().input - self.width.padding - self.width.input

    @cached_property
    def _stored_width(self) -> Axis:
        return self.width if self.group == 1 else self.width.with_stored_padding()

    @cached_property
    def weights(self) -> int:
        """Number of entries of the weight."""
        return self.outputs * self.inputs * self.height.kernel * self.width.kernel

    @cached_property
    def input_shape(self) -> tuple[int, int, int]:
        """Rows, columns and channels, without row padding."""
        return self.height.input, self.width.input, self.inputs

    @cached_property
    def output_shape(self) -> tuple[int, int, int]:
        """Rows, columns and channels."""
        return self.height.output, self.width.output, self.outputs

    @cached_property
    def _positions(self) -> Tensor:
        """The position of each of the weight's entries in memory, in the weight's shape."""
        shape = (self.outputs, self.inputs, self.height.kernel, self.width.kernel)
        return torch.arange(self.weights).view(shape)

    # The convolution: input to output.

    @cached_property
    def packing(self) -> Tensor:
        """Order of the packed weights: (output channel block, kernel row, kernel column, input, output in block)."""
        blocks = self._positions.view(-1, BLOCK, *self._positions.shape[1:])
        return blocks.permute(0, 3, 4, 2, 1).flatten()

    def convolution(self) -> tuple[Operation, Table]:
        """One matrix product for every output position: the inputs under the kernel times the packed weights."""
        down, across = self.height, self._stored_width
        kernel_row = across.kernel * self.inputs
        products = []
        for row in range(down.output):
            top, rows = down.taps_inside(row)
            line = (row * down.stride - down.padding + top) * across.input
            for column in range(across.output):
                left, columns = across.taps_inside(column)
                a = (line + column * across.stride - across.padding + left) * self.inputs
                b = (top * across.kernel + left) * self.inputs * BLOCK
                c = (row * across.output + column) * self.outputs
                products.append((a, b, c, rows, columns * self.inputs))
        strides = {"a_row": across.input * self.inputs, "b_row": kernel_row * BLOCK}
        strides["block_stride"] = down.kernel * kernel_row * BLOCK
        operation = Operation(Kind.MATRIX_PRODUCTS, channels=self.outputs, **strides)
        return operation, np.array(products, np.dtype(MatrixProduct))

    # The transposed convolution: output to input.

    @cached_property
    def _window(self) -> int:
        """Output columns that a group of input columns contributes to, at most."""
        return self.width.overlap + (self.width.stride + self.group - 2) // self.width.stride

    @cached_property
    def _groups(self) -> list[int]:
        """The first column of every group; the last group may overlap the one before and repeat its results."""
        last = self.width.input - self.group
        return sorted({*range(0, last + 1, self.group), last})

    @cached_property
    def _phases(self) -> list[int]:
        """Positions of groups relative to the stride; each has packed weights of its own."""
        return sorted({(start + self.width.padding) % self.width.stride for start in self._groups})

    @cached_property
    def transposed_packing(self) -> Tensor:
        """Order of the packed weights of the transposed convolution; -1 stands for zero.

        (row phase, column phase, channel block of the group, output row, output column, output channel, channel in the
        block), output rows and columns in increasing order and therefore taps in decreasing order.
        """
        down, across = self.height, self.width
        row_taps = torch.arange(down.stride)[:, None] + down.stride * torch.arange(down.overlap - 1, -1, -1)
        back = across.stride * torch.arange(across.overlap - 1, across.overlap - 1 - self._window, -1)
        column_taps = torch.tensor(self._phases)[:, None, None] + back[:, None] + torch.arange(self.group)
        rows, columns = torch.meshgrid(row_taps.flatten(), column_taps.flatten(), indexing="ij")
        outside = (rows >= down.kernel) | (columns < 0) | (columns >= across.kernel)
        order = self._positions[:, :, rows.clamp(max=down.kernel - 1), columns.clamp(0, across.kernel - 1)]
        shape = (self.outputs, self.inputs, *row_taps.shape, *column_taps.shape)
        order = order.masked_fill(outside, -1).view(shape)
        # From (output channel, input channel, row phase, row, column phase, column, position in the group).
        order = order.permute(2, 4, 3, 5, 0, 6, 1).flatten(5)
        return order.reshape(*order.shape[:5], -1, BLOCK).permute(0, 1, 5, 2, 3, 4, 6).flatten()

    def transposed_convolution(self) -> tuple[Operation, Table]:
        """One matrix product for every group of input positions: the outputs it contributes to times packed weights."""
        down, across = self.height, self.width
        channels, row_stride = self.group * self.inputs, self._window * self.outputs * BLOCK
        block_stride = down.overlap * row_stride
        phase_stride = channels // BLOCK * block_stride
        products = []
        for row in range(down.input):
            top, rows = down.outputs_of_inputs(row)
            last, phase = divmod(row + down.padding, down.stride)
            row_weights = phase * len(self._phases) * phase_stride + (top - last + down.overlap - 1) * row_stride
            for start in self._groups:
                left, columns = across.outputs_of_inputs(start, self.group)
                last, phase = divmod(start + across.padding, across.stride)
                column_weights = (left - last + across.overlap - 1) * self.outputs * BLOCK
                a = (top * across.output + left) * self.outputs
                b = row_weights + self._phases.index(phase) * phase_stride + column_weights
                c = (row * across.input + start) * self.inputs
                products.append((a, b, c, rows, columns * self.outputs))
        strides = {"a_row": across.output * self.outputs, "b_row": row_stride, "block_stride": block_stride}
        operation = Operation(Kind.MATRIX_PRODUCTS, channels=channels, **strides)
        return operation, np.array(products, np.dtype(MatrixProduct))

    # The weight's gradient.

    @cached_property
    def unpacking(self) -> Tensor:
        """Where each entry of the weight lies in the partial gradients, which are in the order of ``packing``."""
        return torch.argsort(self.packing)

    def weight_gradient(self) -> tuple[Operation, Table]:
        """One sum of outer products for every tap, or for every row of taps where the input has row padding."""
        down, across = self.height, self._stored_width
        taps = 1 if self.group == 1 else across.kernel
        outers = []
        for tap_row in range(down.kernel):
            top, rows = down.outputs_of_tap(tap_row)
            line = (top * down.stride - down.padding + tap_row) * across.input
            for tap in range(0, across.kernel, taps):
                left, columns = across.outputs_of_tap(tap)
                a = (line + left * across.stride - across.padding + tap) * self.inputs
                b = (top * across.output + left) * self.outputs
                c = (tap_row * across.kernel + tap) * self.inputs * BLOCK
                outers.append((a, b, c, rows, columns))
        strides = {
            "a_row": down.stride * across.input * self.inputs,
            "a_column": across.stride * self.inputs,
            "b_row": across.output * self.outputs,
            "b_column": self.outputs,
            "block_stride": down.kernel * across.kernel * self.inputs * BLOCK,
        }
        operation = Operation(Kind.OUTER_PRODUCTS, channels=self.outputs, outer_rows=taps * self.inputs, **strides)
        return operation, np.array(outers, np.dtype(OuterProduct))
