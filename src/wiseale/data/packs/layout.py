"""Where the rows of a pack lie: all in ``x.npy``, or in files of about 4 GiB each (shards) where there are more."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from wiseale.platform.mapped_files import ALIGNMENT, can_join

SHARD_BYTES = 1 << 32
"""Bytes up to which a pack is one file, and that a shard holds at the most (more only for rows of odd lengths)."""

IMAGES, SHARDS = "x.npy", "shards"
_HEADER_BYTES = 128
_CHECKED_BYTES = 1 << 17  # of a block with a checksum: reading one row of a shard for the first time reads all of it
_BLOCK_ROWS, _BLOCK_BYTES = 32, 1 << 22  # small blocks keep all cores busy to the end, and a kill loses little work


class RowFile(NamedTuple):
    """A file with rows start, …, stop − 1 of a pack, and its size in bytes."""

    name: str
    start: int
    stop: int
    bytes: int


@dataclass(frozen=True)
class Layout:
    """The files of a pack of n rows of this shape.

    Attributes:
        shard_rows: rows in each shard but the last, a multiple of ``block_rows``; None where ``x.npy`` holds all rows.
            Their bytes are a multiple of every system's page size, so that shards can be mapped side by side.
        block_rows: rows in a block, the unit of writing and resuming; no block is in two files.
    """

    n: int
    shape: tuple[int, ...]
    block_rows: int
    shard_rows: int | None = None

    @classmethod
    def of(cls, n: int, shape: tuple[int, ...]) -> Layout:
        """The layout of a new pack.

        >>> Layout.of(200_000, (3, 64, 64)).shard_rows, Layout.of(10**9, (3, 64, 64)).shard_rows
        (None, 349504)
        """
        row_bytes = math.prod(shape)
        block_rows = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // row_bytes))
        if n * row_bytes <= SHARD_BYTES or not can_join():
            return cls(n, shape, block_rows)
        block_rows = 1 << (block_rows.bit_length() - 1)  # a power of two, so that it divides the rows of a shard
        step = max(block_rows, ALIGNMENT // math.gcd(row_bytes, ALIGNMENT))
        return cls(n, shape, block_rows, max(step, SHARD_BYTES // row_bytes // step * step))

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return math.prod(self.shape)

    def checked(self) -> Layout:
        """The same files in smaller blocks, those that have checksums of their own."""
        rows = max(1, min(self.block_rows, _CHECKED_BYTES // self.row_bytes))
        return replace(self, block_rows=1 << (rows.bit_length() - 1))

    @property
    def header(self) -> bytes:
        """What a file holds before its rows: ``x.npy`` NumPy's header, a shard nothing."""
        return npy_header((self.n, *self.shape)) if self.shard_rows is None else b""

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.n // self.block_rows)

    def rows(self, block: int) -> range:
        """Row numbers of a block."""
        return range(block * self.block_rows, min((block + 1) * self.block_rows, self.n))

    def files(self) -> list[RowFile]:
        """The files with rows, in order."""
        size = self.shard_rows or self.n
        parts = [(start, min(start + size, self.n)) for start in range(0, self.n, size)]
        return [RowFile(self._name(start), start, stop, self._end(stop - start)) for start, stop in parts]

    def place(self, row: int) -> tuple[str, int]:
        """The file of a row, and where in it the row begins, in bytes."""
        first = row // self.shard_rows * self.shard_rows if self.shard_rows else 0
        return self._name(row), self._end(row - first)

    def _name(self, row: int) -> str:
        return f"{SHARDS}/{row // self.shard_rows:05d}.u8" if self.shard_rows else IMAGES

    def _end(self, rows: int) -> int:
        return len(self.header) + rows * self.row_bytes


def npy_header(shape: tuple[int, ...]) -> bytes:
    """The header of ``x.npy`` (NumPy format 1.0), padded to 128 bytes so that n can be lowered after writing.

    >>> len(npy_header((9, 3, 64, 64))) == len(npy_header((200_000, 3, 64, 64))) == 128
    True
    """
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text_bytes = _HEADER_BYTES - 10  # 8 bytes of magic and version, 2 of length
    return b"\x93NUMPY\x01\x00" + text_bytes.to_bytes(2, "little") + text.ljust(text_bytes - 1) + b"\n"
