"""A run of convolutions as two programs for the compiled kernel: forwards, and back to the gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wiseale.kernels import BLOCK, native
from wiseale.kernels.geometry import Convolution, Kind, Operation, Table

_BYTES = 4  # of a float


@dataclass(frozen=True)
class Layer:
    """A convolution, or its adjoint, the transposed one, and whether a ReLU follows."""

    convolution: Convolution
    lengthens: bool
    relu: bool

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Rows, columns and channels of the input."""
        return self.convolution.short_shape if self.lengthens else self.convolution.long_shape

    @property
    def output_shape(self) -> tuple[int, int, int]:
        """Rows, columns and channels of the output."""
        return self.convolution.long_shape if self.lengthens else self.convolution.short_shape

    @property
    def room(self) -> tuple[int, int]:
        """Zeros wanted left and right of the input's rows."""
        return (0, 0) if self.lengthens else self.convolution.room

    @property
    def gradient_room(self) -> tuple[int, int]:
        """Zeros wanted left and right of the rows of the output's gradient."""
        return self.convolution.room if self.lengthens else (0, 0)

    def forward_pass(self) -> tuple[Operation, Table, Tensor]:
        """What makes the output, and the order it wants the weight in."""
        return self._pass(self.lengthens)

    def backward_pass(self) -> tuple[Operation, Table, Tensor]:
        """What makes the input's gradient, and the order it wants the weight in."""
        return self._pass(not self.lengthens)

    def _pass(self, lengthens: bool) -> tuple[Operation, Table, Tensor]:
        shape = self.convolution
        if lengthens:
            return *shape.lengthen(), shape.lengthening_index
        return *shape.shorten(), shape.shortening_index


class Program:
    """Operations in their order, the rows of all their tables, and the entries of all their indices."""

    def __init__(self) -> None:
        self._operations: list[Operation] = []
        self._tables: list[Table] = [np.empty((0, 5), np.int64)]
        self._indices: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]

    def add(self, operation: Operation, table: Table) -> None:
        """An operation with its table."""
        self._operations.append(operation._replace(first=sum(map(len, self._tables)), number=len(table)))
        self._tables.append(table)

    def reorder(self, kind: Kind, a: int, c: int, index: Tensor) -> None:
        """Entries of one buffer to another."""
        self._operations.append(Operation(kind, first=sum(map(len, self._indices)), number=len(index), a=a, c=c))
        self._indices.append(index.numpy().astype(np.int32))

    def move(self, operation: Operation) -> None:
        """An operation that needs neither."""
        self._operations.append(operation)

    @cached_property
    def _joined(self) -> tuple[Table, Table, npt.NDArray[np.int32]]:
        return np.array(self._operations, np.int64), np.concatenate(self._tables), np.concatenate(self._indices)

    def __call__(self, buffers: list[list[int]], samples: int) -> None:
        """Run on buffers, whose addresses are listed for each thread."""
        operations, table, index = self._joined
        addresses = np.array(buffers, np.int64)
        library = native().library
        assert library is not None
        library.wiseale_convolve(
            *(operations.ctypes.data, len(operations), table.ctypes.data, index.ctypes.data),
            *(addresses.ctypes.data, addresses.shape[1], samples, len(buffers)),
        )


class Scratch:
    """Memory of the kernel's own, in one tensor: numbers, and signals of every sample."""

    def __init__(self, numbers: list[int], signals: list[int]) -> None:
        self._numbers = [0, *accumulate(map(_aligned, numbers))]
        self._signals = [0, *accumulate(signals)]

    def floats(self, samples: int) -> int:
        """Of the tensor."""
        return self._numbers[-1] + samples * self._signals[-1]

    def addresses(self, tensor: Tensor, samples: int) -> list[int]:
        """Of the numbers, then of the signals."""
        numbers = tensor.data_ptr()
        signals = numbers + _BYTES * self._numbers[-1]
        return [
            *(numbers + _BYTES * start for start in self._numbers[:-1]),
            *(signals + _BYTES * samples * start for start in self._signals[:-1]),
        ]


def _aligned(floats: int) -> int:
    return -(-floats // BLOCK) * BLOCK


class Programs:
    """What a run of layers does to batches of any size.

    Buffers of ``forwards``: the input, the output, the weights, the biases, then the scratch: the weights and biases as
    the kernel wants them, and the signals from the input to the output.

    Buffers of ``backwards``: the output's gradient, the output, the input's gradient, the signals, the weights, their
    gradients, the biases' gradients, then the scratch: the weights as the kernel wants them, the signals' gradients;
    then what a thread has found of the weights' gradients and of the biases'.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers, self._count = layers, len(layers)
        rooms = [layers[0].room, *((0, 0) for _ in layers)]
        gradient_rooms = [*((0, 0) for _ in layers), layers[-1].gradient_room]
        shapes = [layers[0].input_shape, *(layer.output_shape for layer in layers)]
        self._signals = [_Signal(*shape, *room) for shape, room in zip(shapes, rooms, strict=True)]
        self._gradients = [_Signal(*shape, *room) for shape, room in zip(shapes, gradient_rooms, strict=True)]
        self.entries = [layer.convolution.entries for layer in layers]
        self.channels = [layer.output_shape[2] for layer in layers]
        self.forwards, matrices = self._forwards()
        self.scratch = Scratch(matrices, [signal.floats for signal in self._signals])
        (self.backwards, _), (self.backwards_to_input, matrices) = self._backwards(False), self._backwards(True)
        self.gradient_scratch = Scratch(matrices, [signal.floats for signal in self._gradients])
        self.found = Scratch(self.entries + self.channels, [])

    def signal_addresses(self, scratch: Tensor, samples: int) -> list[int]:
        """Of the signals in the forward program's scratch."""
        return self.scratch.addresses(scratch, samples)[2 * self._count :]

    def _forwards(self) -> tuple[Program, list[int]]:
        """The program, and the sizes of its matrices and biases."""
        n, program = self._count, Program()
        x, y, weights, biases, matrices, added, signals = 0, 1, 2, 2 + n, 2 + 2 * n, 2 + 3 * n, 2 + 4 * n
        program.move(self._signals[0].enter(x, signals))
        sizes, repeats = [], []
        for i, layer in enumerate(self.layers):
            operation, table, index = layer.forward_pass()
            sizes.append(len(index))
            program.reorder(Kind.PICK, weights + i, matrices + i, index)
            repeats.append(operation.width)
            program.reorder(Kind.PICK, biases + i, added + i, torch.arange(operation.width) % self.channels[i])
            buffers = {"a": signals + i, "b": matrices + i, "c": signals + i + 1, "bias": added + i}
            floats = {"a_sample": self._signals[i].floats, "c_sample": self._signals[i + 1].floats}
            program.add(operation._replace(**buffers, **floats, relu=int(layer.relu)), table)
        program.move(self._signals[n].leave(signals + n, y))
        return program, sizes + repeats

    def _backwards(self, to_input: bool) -> tuple[Program, list[int]]:
        """The program, and the sizes of its matrices."""
        n, program = self._count, Program()
        gradient, y, to_x, signals = 0, 1, 2, 3
        weights, to_weights, to_biases = (signals + n + 1 + i * n for i in range(3))
        matrices, gradients = to_biases + n, to_biases + 2 * n
        found, found_biases = gradients + n + 1, gradients + 2 * n + 1
        last = self._gradients[n].enter(gradient, gradients + n)
        program.move(last._replace(positive=y) if self.layers[-1].relu else last)
        sizes = []
        for i in reversed(range(n)):
            layer, arriving = self.layers[i], self._gradients[i + 1]
            sides = (gradients + i + 1, arriving.floats), (signals + i, self._signals[i].floats)
            (a, a_sample), (b, b_sample) = sides if layer.lengthens else sides[::-1]
            operation, table = layer.convolution.gradient()
            program.add(operation._replace(a=a, a_sample=a_sample, b=b, b_sample=b_sample, c=found + i), table)
            program.reorder(Kind.GIVE, found + i, to_weights + i, layer.convolution.gradient_index)
            program.move(arriving.sum(gradients + i + 1, found_biases + i))
            program.reorder(Kind.GIVE, found_biases + i, to_biases + i, torch.arange(self.channels[i]))
            operation, table, index = layer.backward_pass()
            sizes.append(len(index))
            if i or to_input:
                program.reorder(Kind.PICK, weights + i, matrices + i, index)
                buffers = {"a": gradients + i + 1, "b": matrices + i, "c": gradients + i}
                floats = {"a_sample": arriving.floats, "c_sample": self._gradients[i].floats}
                positive = signals + i if i and self.layers[i - 1].relu else -1
                program.add(operation._replace(**buffers, **floats, positive=positive), table)
        if to_input:
            program.move(self._gradients[0].leave(gradients, to_x))
        return program, sizes[::-1]


@dataclass(frozen=True)
class _Signal:
    """How the kernel stores a signal, with zeros left and right of its rows.

    Samples have some floats to spare: if they lay a power of two apart they would fall on the same places of a cache.
    """

    rows: int
    columns: int
    channels: int
    left: int
    right: int

    @cached_property
    def floats(self) -> int:
        """From one sample to the next."""
        return _aligned(self.rows * (self.left + self.columns + self.right) * self.channels) + BLOCK

    def enter(self, a: int, c: int) -> Operation:
        """From torch's order."""
        return self._move(Kind.ENTER, a, c)._replace(a_sample=self._bare, c_sample=self.floats)

    def leave(self, a: int, c: int) -> Operation:
        """To torch's order, from a signal that has no room."""
        return self._move(Kind.LEAVE, a, c)._replace(a_sample=self.floats, c_sample=self._bare)

    def sum(self, a: int, c: int) -> Operation:
        """Over all samples and positions."""
        positions = self.rows * (self.left + self.columns + self.right)
        return Operation(Kind.SUMS, number=positions, a=a, a_sample=self.floats, c=c, width=self.channels)

    @property
    def _bare(self) -> int:
        return self.rows * self.columns * self.channels

    def _move(self, kind: Kind, a: int, c: int) -> Operation:
        sizes = {"number": self.rows * self.columns, "width": self.channels, "height": self.rows}
        return Operation(kind, a=a, c=c, left=self.left, right=self.right, **sizes)
