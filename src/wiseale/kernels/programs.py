"""A chain of convolutions as two lists of operations for conv.c: the forward pass and the backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wiseale.kernels import build
from wiseale.kernels.geometry import Convolution, Span, Table
from wiseale.kernels.layout import BLOCK, NO_BUFFER, Kind, MatrixProduct, Operation, OuterProduct

_FLOAT_BYTES = 4


@dataclass(frozen=True)
class Layer:
    """A convolution, or the transposed one of the same geometry, and whether a ReLU follows."""

    geometry: Convolution
    transposed: bool
    relu: bool = False

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Rows, columns and channels of the layer's input."""
        return self.geometry.output_shape if self.transposed else self.geometry.input_shape

    @property
    def output_shape(self) -> tuple[int, int, int]:
        """Rows, columns and channels of the layer's output."""
        return self.geometry.input_shape if self.transposed else self.geometry.output_shape

    @property
    def input_row_padding(self) -> Span:
        """Zeros to store left and right of the rows of the layer's input."""
        return (0, 0) if self.transposed else self.geometry.row_padding

    @property
    def gradient_row_padding(self) -> Span:
        """Zeros to store left and right of the rows of the gradient of the layer's output."""
        return self.geometry.row_padding if self.transposed else (0, 0)

    def products(self, *, backward: bool) -> tuple[Operation, Table, Tensor]:
        """Input to output, or the output's gradient to the input's; and the order of the packed weights."""
        geometry = self.geometry
        if self.transposed != backward:
            return *geometry.transposed_convolution(), geometry.transposed_packing
        return *geometry.convolution(), geometry.packing


class Program:
    """Operations in order, with the tables and indices they refer to."""

    def __init__(self) -> None:
        self._operations: list[Operation] = []
        self._products: list[Table] = [np.empty(0, np.dtype(MatrixProduct))]
        self._outers: list[Table] = [np.empty(0, np.dtype(OuterProduct))]
        self._indices: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]

    def add(self, operation: Operation, table: Table | None = None) -> None:
        """Append an operation, with its table if it has one."""
        if table is not None:
            tables = self._products if operation.kind == Kind.MATRIX_PRODUCTS else self._outers
            operation = operation.using(first=sum(map(len, tables)), count=len(table))
            tables.append(table)
        self._operations.append(operation)

    def reorder(self, kind: Kind, a: int, c: int, index: Tensor) -> None:
        """Append PACK or UNPACK: buffer c = buffer a in the order of ``index``."""
        self._operations.append(Operation(kind, first=sum(map(len, self._indices)), count=len(index), a=a, c=c))
        self._indices.append(index.numpy().astype(np.int32))

    @cached_property
    def _arguments(self) -> tuple[bytes, Table, Table, npt.NDArray[np.int32]]:
        operations = b"".join(map(bytes, self._operations))
        return operations, np.concatenate(self._products), np.concatenate(self._outers), np.concatenate(self._indices)

    def __call__(self, buffers: list[list[int]], samples: int) -> None:
        """Run on these buffers: a list of addresses for each thread."""
        operations, *tables = self._arguments
        addresses = np.array(buffers, np.int64)
        library = build.kernels().library
        assert library is not None
        library.wiseale_convolve(
            *(operations, len(self._operations), *(table.ctypes.data for table in tables)),
            *(addresses.ctypes.data, addresses.shape[1], samples, len(buffers)),
        )


class Scratch:
    """Sizes and addresses of buffers that share one tensor: some of a fixed size, then some of a size per sample."""

    def __init__(self, fixed: list[int], per_sample: list[int]) -> None:
        self._fixed = [0, *accumulate(map(_aligned, fixed))]
        self._per_sample = [0, *accumulate(per_sample)]

    def floats(self, samples: int) -> int:
        """Size of the tensor."""
        return self._fixed[-1] + samples * self._per_sample[-1]

    def addresses(self, tensor: Tensor, samples: int) -> list[int]:
        """Of the buffers of fixed size, then of those with a size per sample."""
        starts = [*self._fixed[:-1], *(self._fixed[-1] + samples * start for start in self._per_sample[:-1])]
        return [tensor.data_ptr() + _FLOAT_BYTES * start for start in starts]


def _aligned(floats: int) -> int:
    return -(-floats // BLOCK) * BLOCK


class Programs:
    """The forward and backward programs of a chain of n layers, for batches of any size.

    Buffers of ``forward``: input, output, n weights, n biases; in ``scratch``: n packed weights, n packed biases, n + 1
    signals (the input, and the output of every layer, channels last).

    Buffers of ``backward``: gradient of the output, output, gradient of the input, the n + 1 signals, n weights,
    n weight gradients, n bias gradients; in ``gradient_scratch``: n packed weights, n + 1 gradients of the signals; and
    for each thread in ``partial_gradients``: n weight gradients, n bias gradients.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers, self._count = layers, len(layers)
        paddings = [layers[0].input_row_padding, *((0, 0) for _ in layers)]
        gradient_paddings = [*((0, 0) for _ in layers), layers[-1].gradient_row_padding]
        shapes = [layers[0].input_shape, *(layer.output_shape for layer in layers)]
        self._signals = [_Signal(*shape, *padding) for shape, padding in zip(shapes, paddings, strict=True)]
        self._gradients = [_Signal(*shape, *padding) for shape, padding in zip(shapes, gradient_paddings, strict=True)]
        self.channels = [layer.output_shape[2] for layer in layers]
        self.forward, packed = self._forward()
        self.scratch = Scratch(packed, [signal.floats for signal in self._signals])
        (self.backward, _), (self.backward_to_input, packed) = self._backward(False), self._backward(True)
        self.gradient_scratch = Scratch(packed, [signal.floats for signal in self._gradients])
        self.partial_gradients = Scratch([layer.geometry.weights for layer in layers] + self.channels, [])

    def signal_addresses(self, scratch: Tensor, samples: int) -> list[int]:
        """Of the signals in the forward program's scratch."""
        return self.scratch.addresses(scratch, samples)[2 * self._count :]

    def _forward(self) -> tuple[Program, list[int]]:
        """The program, and the sizes of the packed weights and biases."""
        n, program = self._count, Program()
        x, y, weights, biases = 0, 1, 2, 2 + n
        packed, packed_biases, signals = 2 + 2 * n, 2 + 3 * n, 2 + 4 * n
        program.add(self._signals[0].from_nchw(x, signals))
        sizes, bias_sizes = [], []
        for i, layer in enumerate(self.layers):
            operation, table, packing = layer.products(backward=False)
            sizes.append(len(packing))
            program.reorder(Kind.PACK, weights + i, packed + i, packing)
            bias_sizes.append(operation.channels)  # repeated for every position of a group
            repeated = torch.arange(operation.channels) % self.channels[i]
            program.reorder(Kind.PACK, biases + i, packed_biases + i, repeated)
            buffers = {"a": signals + i, "b": packed + i, "c": signals + i + 1, "bias": packed_biases + i}
            strides = {"a_sample": self._signals[i].floats, "c_sample": self._signals[i + 1].floats}
            program.add(operation.using(**buffers, **strides, relu=int(layer.relu)), table)
        program.add(self._signals[n].to_nchw(signals + n, y))
        return program, sizes + bias_sizes

    def _backward(self, to_input: bool) -> tuple[Program, list[int]]:
        """The program, with or without the gradient of the input, and the sizes of the packed weights."""
        n, program = self._count, Program()
        grad_y, y, grad_x, signals = 0, 1, 2, 3
        weights, grad_weights, grad_biases = (signals + n + 1 + i * n for i in range(3))
        packed, gradients = grad_biases + n, grad_biases + 2 * n
        partial, partial_biases = gradients + n + 1, gradients + 2 * n + 1
        arrival = self._gradients[n].from_nchw(grad_y, gradients + n)
        program.add(arrival.using(relu_mask=y) if self.layers[-1].relu else arrival)
        sizes = []
        for i in reversed(range(n)):
            layer, arriving = self.layers[i], self._gradients[i + 1]
            # The convolution's input side comes first: of a transposed layer that is the gradient of its output.
            sides = (gradients + i + 1, arriving.floats), (signals + i, self._signals[i].floats)
            (a, a_sample), (b, b_sample) = sides if layer.transposed else sides[::-1]
            operation, table = layer.geometry.weight_gradient()
            program.add(operation.using(a=a, a_sample=a_sample, b=b, b_sample=b_sample, c=partial + i), table)
            program.reorder(Kind.UNPACK, partial + i, grad_weights + i, layer.geometry.unpacking)
            program.add(arriving.bias_gradient(gradients + i + 1, partial_biases + i))
            program.reorder(Kind.UNPACK, partial_biases + i, grad_biases + i, torch.arange(self.channels[i]))
            operation, table, packing = layer.products(backward=True)
            sizes.append(len(packing))
            if i or to_input:
                program.reorder(Kind.PACK, weights + i, packed + i, packing)
                buffers = {"a": gradients + i + 1, "b": packed + i, "c": gradients + i}
                strides = {"a_sample": arriving.floats, "c_sample": self._gradients[i].floats}
                relu_mask = signals + i if i and self.layers[i - 1].relu else NO_BUFFER
                program.add(operation.using(**buffers, **strides, relu_mask=relu_mask), table)
        if to_input:
            program.add(self._gradients[0].to_nchw(gradients, grad_x))
        return program, sizes[::-1]


@dataclass(frozen=True)
class _Signal:
    """A signal stored channels last, with ``left`` and ``right`` positions of zeros around its rows."""

    rows: int
    columns: int
    channels: int
    left: int
    right: int

    @cached_property
    def floats(self) -> int:
        """Stride from one sample to the next.

        It exceeds the size by a block: samples a power of two apart would compete for the same lines of the cache.
        """
        return _aligned(self._stored_positions * self.channels) + BLOCK

    def from_nchw(self, a: int, c: int) -> Operation:
        """From torch's order."""
        padding = {"pad_left": self.left, "pad_right": self.right, "image_rows": self.rows}
        strides = {"a_sample": self._positions * self.channels, "c_sample": self.floats}
        fields = {"count": self._positions, "a": a, "c": c, "channels": self.channels}
        return Operation(Kind.NCHW_TO_NHWC, **fields, **strides, **padding)

    def to_nchw(self, a: int, c: int) -> Operation:
        """To torch's order, from a signal without row padding."""
        strides = {"a_sample": self.floats, "c_sample": self._positions * self.channels}
        return Operation(Kind.NHWC_TO_NCHW, count=self._positions, a=a, c=c, channels=self.channels, **strides)

    def bias_gradient(self, a: int, c: int) -> Operation:
        """Sum over all samples and positions."""
        count = self._stored_positions
        return Operation(Kind.BIAS_GRADIENT, count=count, a=a, a_sample=self.floats, c=c, channels=self.channels)

    @property
    def _positions(self) -> int:
        return self.rows * self.columns

    @property
    def _stored_positions(self) -> int:
        return self.rows * (self.left + self.columns + self.right)
