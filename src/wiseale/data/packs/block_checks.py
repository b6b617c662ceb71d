"""The blocks of a sharded pack, each compared with its checksum when one of its rows is first read."""

from __future__ import annotations

import hashlib
import mmap
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wiseale.data.packs.manifest import Manifest, damaged
from wiseale.data.packs.stamps import Stamp, record_as_verified
from wiseale.platform.mapped_files import address_of, mapping_of

_RECORD_SECONDS = 60.0  # between two records of what has been verified


class CheckedMapping(mmap.mmap):
    """The memory of a pack's shards; ``checks`` is None once every file is known to be right."""

    checks: BlockChecks | None = None


def check_rows(x: npt.NDArray[Any], rows: slice | npt.NDArray[np.int64]) -> bool:
    """Verify the blocks with these rows of x, where x is in a pack's memory and they have not been verified yet.

    Every reader of rows calls this first. Rows of other arrays, and of packs known to be right, pass.

    Returns:
        Whether blocks of the pack are still to be verified.
    """
    mapping = mapping_of(x)
    if not isinstance(mapping, CheckedMapping) or mapping.checks is None:
        return False
    numbers = np.arange(*rows.indices(len(x))) if isinstance(rows, slice) else rows
    first = x.ctypes.data - address_of(mapping)
    mapping.checks.check((first + numbers * x.strides[0]) // mapping.checks.block_bytes)
    if mapping.checks.finished:
        mapping.checks = None
    return mapping.checks is not None


class BlockChecks:
    """Verifies blocks of a pack that have not been verified before; an error names the first that is damaged.

    ``stamps`` are those of the files that are as they were when they were last verified.
    """

    def __init__(self, folder: Path, manifest: Manifest, stamps: dict[str, Stamp]) -> None:
        assert manifest.sharding is not None
        self._folder, self._layout, self._shards = folder, manifest.layout, manifest.sharding.shards
        self._files = self._layout.files()
        self._stamps = dict(stamps)
        self._per_shard = manifest.sharding.shard_rows // manifest.sharding.block_rows
        self._verified = np.array([file.name in stamps for file in self._files])
        self._done: dict[int, npt.NDArray[np.bool_]] = {}  # by shard: which blocks of one read in part are right
        self._sums: dict[int, npt.NDArray[np.uint32]] = {}
        self._recorded = time.monotonic()
        self.block_bytes = self._layout.block_rows * self._layout.row_bytes

    @property
    def finished(self) -> bool:
        """Whether every block has been verified."""
        return bool(self._verified.all())

    def check(self, blocks: npt.NDArray[np.int64]) -> None:
        """Verify these blocks."""
        for block in np.unique(blocks[~self._verified[blocks // self._per_shard]]).tolist():
            shard, place = divmod(block, self._per_shard)
            if self._verified[shard]:  # a block before this one was its last
                continue
            if shard not in self._done:
                self._sums[shard] = self._checksums(shard)
                self._done[shard] = np.zeros(len(self._sums[shard]), np.bool_)
            if self._done[shard][place]:
                continue
            if zlib.crc32(self._read(block)) != self._sums[shard][place]:
                rows = self._layout.rows(block)
                problem = f"the checksum of its rows {rows.start:,} to {rows.stop - 1:,} of the set does not match"
                raise damaged(self._folder, self._files[shard].name, problem)
            self._done[shard][place] = True
            if self._done[shard].all():
                self._finish(shard)

    def _read(self, block: int) -> bytes:
        """A block, read from its file: through the mapping its pages would count as this process's memory."""
        rows = self._layout.rows(block)
        name, offset = self._layout.place(rows.start)
        try:
            with (self._folder / name).open("rb", buffering=0) as file:
                file.seek(offset)
                return file.read(len(rows) * self._layout.row_bytes)
        except OSError as error:
            raise damaged(self._folder, name, error.strerror or "unreadable") from None

    def _checksums(self, shard: int) -> npt.NDArray[np.uint32]:
        """The checksums of a shard's blocks, read when the first of its rows is."""
        name = checksums_name(self._files[shard].name)
        try:
            content = (self._folder / name).read_bytes()
        except OSError as error:
            raise damaged(self._folder, name, error.strerror or "unreadable") from None
        if hashlib.sha256(content).hexdigest() != self._shards[shard].blocks_sha256:
            raise damaged(self._folder, name, "its checksum does not match")
        return np.frombuffer(content, "<u4")

    def _finish(self, shard: int) -> None:
        """Record a verified shard for later processes; not too often, because the record is of all shards."""
        file = self._files[shard]
        self._stamps[file.name] = Stamp.of((self._folder / file.name).stat(), self._shards[shard].sha256)
        self._verified[shard] = True
        del self._sums[shard], self._done[shard]
        if self.finished or time.monotonic() - self._recorded > _RECORD_SECONDS:
            record_as_verified(self._folder, self._stamps)
            self._recorded = time.monotonic()


def checksums_name(file: str) -> str:
    """The file with the CRC-32 of each block of a shard, four bytes each, little-endian."""
    return file.removesuffix(".u8") + ".crc32"
