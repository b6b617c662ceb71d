"""Rows of memory-mapped files: verified when first read, and prefetched where the files are larger than memory."""

from __future__ import annotations

import math
import mmap
from contextlib import suppress

from torch import Tensor

from wiseale.data.dataset import Array
from wiseale.data.packs.block_checks import CheckedMapping, check_rows
from wiseale.platform.machine import major_page_faults
from wiseale.platform.mapped_files import address_of, mapping_of

_PREFETCHED_BATCHES = 64  # after a batch that waited for the disk; the batch after them is read without, as a test


class MappedRows:
    """Prefetches the rows of a batch with ``madvise`` while reading them causes page faults on the disk.

    Rows of a packed set are compared with their checksums before they are first read.

    Without prefetching, the system reads a few pages around each fault and waits for them before the next row; with it,
    it reads all rows of a batch at once, and only them. Rows already in memory need no prefetching.
    """

    def __init__(self, x: Array, mapping: mmap.mmap) -> None:
        self._x, self._mapping = x, mapping
        self._start = x.ctypes.data - address_of(mapping)
        self._row_bytes = x.itemsize * math.prod(x.shape[1:])
        self._left = 0
        self._unverified = isinstance(mapping, CheckedMapping) and mapping.checks is not None

    @classmethod
    def of(cls, x: Array) -> MappedRows | None:
        """For a C-contiguous array in a mapped file's memory; None for others and on systems without madvise."""
        if not hasattr(mmap, "MADV_WILLNEED"):  # Windows
            return None
        mapping = mapping_of(x)
        return cls(x, mapping) if mapping is not None and x.flags.c_contiguous else None

    def before_reading(self, rows: Tensor) -> int:
        """Prefetch these rows if recent reads waited for the disk; returns the argument of ``after_reading``."""
        if self._unverified:
            self._unverified = check_rows(self._x, rows.numpy())
        if self._left:
            self._left -= 1
            with suppress(OSError):  # a file system may not take advice; the rows are then read as before
                for row in rows.tolist():
                    first = self._start + row * self._row_bytes
                    page = first - first % mmap.PAGESIZE
                    self._mapping.madvise(mmap.MADV_WILLNEED, page, first + self._row_bytes - page)
        return major_page_faults()

    def after_reading(self, waits_before: int) -> None:
        """Prefetch the next batches if reading waited for the disk."""
        if major_page_faults() > waits_before:
            self._left = _PREFETCHED_BATCHES
