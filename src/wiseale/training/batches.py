"""Rows of a dataset as batches of tensors: from one tensor in memory, or from a memory-mapped file."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from wiseale import kernels
from wiseale.data.dataset import Array, Rows
from wiseale.randomness import generator
from wiseale.spaces.units import Units, interpret
from wiseale.training.split import Indices

_IN_MEMORY_BYTES = 2 << 30  # sets that are larger as float32 are read batch by batch
_BLOCK_ENTRIES = 1 << 20  # numbers converted at a time


class Batches:
    """Batches of the chosen rows, in the network's units, on the device: ``batches.read(order[:64])``.

    A set that fits into memory is converted once and then indexed; a larger one is converted batch by batch.
    """

    def __init__(
        self,
        rows: Rows,
        index: Indices | None = None,
        *,
        units: Units | None = None,
        device: torch.device | str = "cpu",
        seed: int = 0,
        copies: int = 1,
    ) -> None:
        self._index = None if index is None else torch.from_numpy(index)
        self._rows = rows
        self._units = units or Units()
        self._standardized = not self._units.is_identity
        self._device = torch.device(device)
        self._seed = seed
        self._n = len(rows) if index is None else len(index)
        fits = rows.x.size * 4 * copies <= _IN_MEMORY_BYTES  # each process of this machine keeps a copy
        self._stored = _view(rows.x)
        self._levels = self._bytes_for_c()
        self._tensor: Tensor | None = None
        if fits and rows.reading != "dynamic":
            self._tensor = self._convert_all().to(self._device)

    def __len__(self) -> int:
        return self._n

    def read(self, positions: Tensor, counter: int = 0) -> Tensor:
        """The rows at these positions, (k, *x_shape); ``counter`` keys the draws of dynamic binarisation."""
        if self._tensor is not None:
            return self._tensor.index_select(0, positions.to(self._device))
        if self._levels is not None:
            return kernels.bytes.gather(self._levels, self._numbers(positions), 1 / 255)
        stored = self.gather(positions)
        if stored.dtype == torch.uint8 and not self._standardized and self._rows.reading != "dynamic":
            stored = stored.to(self._device)  # a byte is a quarter of a float: convert on the device
        return self._convert(stored, counter).to(self._device)

    def gather(self, positions: Tensor) -> Tensor:
        """The rows at these positions as they are stored, copied, on the CPU."""
        rows = self._numbers(positions)
        if self._stored is None:
            return interpret(self._rows.x[rows.numpy()], "values")
        return self._stored.index_select(0, rows)

    def _numbers(self, positions: Tensor) -> Tensor:
        """Row numbers at these positions."""
        return positions if self._index is None else self._index[positions]

    def _bytes_for_c(self) -> Tensor | None:
        """The stored bytes if dividing by 255 is all they need, which C does while it gathers rows; else None."""
        stored, bare = self._stored, not self._standardized and self._rows.reading == "unit"
        if stored is None or stored.dtype != torch.uint8 or not bare or self._device.type != "cpu":
            return None
        return stored if kernels.available() else None

    def read_part(self, positions: Tensor, counter: int, part: slice) -> Tensor:
        """``read(positions, counter)[part]``; dynamic binarisation reads all rows, because it draws for all of them."""
        if self._rows.reading == "dynamic":
            return self.read(positions, counter)[part]
        return self.read(positions[part], counter)

    def _convert_all(self) -> Tensor:
        """Convert every chosen row, block by block, so that only the result takes much memory."""
        result = torch.empty((self._n, *self._rows.x.shape[1:]))
        size = max(1, _BLOCK_ENTRIES // max(1, result[:1].numel()))
        for part in torch.split(torch.arange(self._n), size):
            result[part] = self._convert(self.gather(part), 0)
        return result

    def _convert(self, stored: Tensor, counter: int) -> Tensor:
        reading = self._rows.reading
        draws = generator(self._seed, "binarize", counter) if reading == "dynamic" else None
        x: Tensor = self._units(interpret(stored, reading, draws))
        return x.float()


def _view(x: Array) -> Tensor | None:
    """The array's own memory as a tensor, memory-mapped files too: its rows are gathered on all threads.

    None where torch cannot represent the array. The tensor must not be written to: the array may be read-only.
    """
    if x.dtype not in (np.uint8, np.float32, np.float64) or not x.dtype.isnative or not x.flags.c_contiguous:
        return None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        return torch.from_numpy(np.asarray(x))
