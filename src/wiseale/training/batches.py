"""Rows to train on and rows held out, and batches of them: from a tensor in memory, or a memory-mapped file."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wiseale import kernels
from wiseale.data.dataset import Array, Rows
from wiseale.errors import DataError
from wiseale.randomness import generator, shuffled
from wiseale.spaces.units import Units, interpret

MOST_HELD_OUT = 50_000
"""Rows held out at the most unless ``held_out_most`` says otherwise: more would cost time and change little."""

Indices = npt.NDArray[np.int64]

_IN_MEMORY_BYTES = 2 << 30  # sets that are larger as float32 are read batch by batch
_BLOCK_ENTRIES = 1 << 20  # numbers converted at a time


class Split(NamedTuple):
    """The rows to train on and the rows held out, each in ascending order."""

    train: Indices
    held_out: Indices


def held_out_count(n: int, part: float, most: int = MOST_HELD_OUT) -> int:
    """Rows held out of n: the given part, rounded, and at most ``most``; at least two rows remain to train on."""
    return min(round(n * part), most, n - 2) if n > 2 else 0


def split_rows(n: int, part: float, most: int, seed: int) -> Split:
    """The split of n rows, of which this part is held out, at most ``most``; a function of its arguments."""
    if n < 2:
        raise DataError(f"the data has {n} rows: at least 2 are needed")
    order = shuffled(n, seed, "held out").numpy()
    count = held_out_count(n, part, most)
    return Split(np.sort(order[count:]), np.sort(order[:count]))


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
        self._device = torch.device(device)
        self._seed = seed
        self._n = len(rows) if index is None else len(index)
        fits = rows.x.size * 4 * copies <= _IN_MEMORY_BYTES  # each process of this machine keeps a copy
        self._stored = _view(rows.x)
        self._levels: Tensor | None = None  # bytes that need no more than a division by 255, which C does in gathering
        if self._stored is not None and self._stored.dtype == torch.uint8 and rows.reading == "unit":
            in_c = self._units.is_identity and self._device.type == "cpu" and kernels.available()
            self._levels = self._stored if in_c else None
        self._tensor: Tensor | None = None
        if fits and rows.reading != "dynamic":  # converted block by block, so that only the result takes much memory
            self._tensor = torch.empty((self._n, *rows.x.shape[1:]))
            for part in torch.split(torch.arange(self._n), max(1, _BLOCK_ENTRIES // max(1, rows.x[:1].size))):
                self._tensor[part] = self._convert(self.gather(part), 0)
            self._tensor = self._tensor.to(self._device)

    def __len__(self) -> int:
        return self._n

    def read(self, positions: Tensor, counter: int = 0) -> Tensor:
        """The rows at these positions, (k, *x_shape); ``counter`` keys the draws of dynamic binarisation."""
        if self._tensor is not None:
            return self._tensor.index_select(0, positions.to(self._device))
        if self._levels is not None:
            return kernels.gather_bytes(self._levels, self._numbers(positions), 1 / 255)
        stored = self.gather(positions)
        if stored.dtype == torch.uint8 and self._units.is_identity and self._rows.reading != "dynamic":
            stored = stored.to(self._device)  # a byte is a quarter of a float: convert on the device
        return self._convert(stored, counter).to(self._device)

    def gather(self, positions: Tensor) -> Tensor:
        """The rows at these positions as they are stored, copied, on the CPU."""
        rows = self._numbers(positions)
        if self._stored is None:
            return interpret(self._rows.x[rows.numpy()], "values")
        return self._stored.index_select(0, rows)

    def _numbers(self, positions: Tensor) -> Tensor:
        return positions if self._index is None else self._index[positions]

    def read_part(self, positions: Tensor, counter: int, part: slice) -> Tensor:
        """``read(positions, counter)[part]``; dynamic binarisation reads all rows, because it draws for all of them."""
        if self._rows.reading == "dynamic":
            return self.read(positions, counter)[part]
        return self.read(positions[part], counter)

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
