"""Rows of a memory-mapped file asked for ahead, where they come from the disk."""

from __future__ import annotations

import mmap
import resource
from contextlib import suppress
from typing import Any

import numpy as np
from torch import Tensor

from wiseale.data.dataset import Array

_ASKED_BATCHES = 64  # after one that had to wait for the disk; then whether the next one has to is seen again


class MappedRows:
    """Tells the system which rows of a mapped array are about to be read, as long as reading them waits for the disk.

    Left to page faults the system reads a piece around each fault and waits for it before the next row; told ahead it
    reads all rows of a batch at once, and only them. Rows that are in memory need none of this.
    """

    def __init__(self, x: Array, mapping: mmap.mmap) -> None:
        self._mapping = mapping
        self._start = x.ctypes.data - np.frombuffer(mapping, np.uint8).ctypes.data
        self._row_bytes = x.itemsize * int(np.prod(x.shape[1:]))
        self._left = 0

    @classmethod
    def of(cls, x: Array) -> MappedRows | None:
        """For an array that is a mapped file's memory, row after row; None for any other."""
        owner: Any = x
        while isinstance(owner, np.ndarray):
            owner = owner.base
        return cls(x, owner) if isinstance(owner, mmap.mmap) and x.flags.c_contiguous else None

    def before_reading(self, rows: Tensor) -> int:
        """Ask for these rows if it is time to; returns what ``after_reading`` wants."""
        if self._left:
            self._left -= 1
            with suppress(OSError):  # a file system may not take advice; the rows are then read as before
                for row in rows.tolist():
                    first = self._start + row * self._row_bytes
                    page = first - first % mmap.PAGESIZE
                    self._mapping.madvise(mmap.MADV_WILLNEED, page, first + self._row_bytes - page)
        return _waits()

    def after_reading(self, waits_before: int) -> None:
        """Ask ahead from now on if reading had to wait."""
        if _waits() > waits_before:
            self._left = _ASKED_BATCHES


def _waits() -> int:
    """How often this process has waited for a page from the disk."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt
