"""Write a pack atomically, resumable after a kill, in constant memory.

A pack is written to the sibling folder ``NAME.partial``: the images to a file of the final size, and one journal line
with a checksum for each finished block of rows. The finished folder is renamed to its final name; until then an older
pack of that name stays in place. Blocks are written with ``write``, not through a memory map: on a full disk ``write``
raises an error, while a memory map kills the process.
"""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TextIO

import numpy as np
import numpy.typing as npt

from wiseale.data.dataset import Array
from wiseale.data.packs.reader import (
    FACTORS,
    IMAGES,
    MANIFEST,
    Manifest,
    Pack,
    find_pack,
    npy_header,
    open_pack,
    record_as_verified,
)
from wiseale.errors import DataError
from wiseale.platform.atomic_files import reserve_space, sha256, sync
from wiseale.platform.json_files import parse_json, read_text, require_regular
from wiseale.platform.locks import exclusive_lock

JOURNAL = "journal.jsonl"
_BLOCK_ROWS, _BLOCK_BYTES = 32, 1 << 22  # small blocks keep all cores busy to the end, and a kill loses little work
_MAX_JOURNAL = 1 << 30  # bytes, a line for each block
_SPARE_BYTES = 1 << 20  # for journal, factors and manifest
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class PackWriter:
    """Writes one pack; as a context manager it holds a lock, so that no other process writes the same pack.

    Attributes:
        finished: whether an intact pack of this source already exists, so that there is nothing to write.
        block_rows: rows in a block, the unit of writing, checking and resuming.
        bad: row number → reason, for rows that could not be decoded.
    """

    def __init__(self, path: Path, n: int, shape: tuple[int, ...], source: str) -> None:
        if n < 1 or min(shape) < 1:
            raise ValueError(f"a pack needs at least one row and one entry, got {n} rows of {shape}")
        self.path, self.n, self.shape, self.source = path, n, shape, source
        self.row_bytes = math.prod(shape)
        self.block_rows = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // self.row_bytes))
        self.finished = False
        self.bad: dict[int, str] = {}
        self._partial = path.with_name(f"{path.name}.partial")
        self._replaced = path.with_name(f"{path.name}.replaced")
        self._header = npy_header((n, *shape))
        self._done: set[int] = set()
        self._open = ExitStack()
        self._file: BinaryIO
        self._journal: TextIO

    @property
    def images(self) -> Path:
        """The file that receives the images; worker processes write their blocks into it directly."""
        return self._partial / IMAGES

    def __enter__(self) -> PackWriter:
        with self.writing(), ExitStack() as stack:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(exclusive_lock(self.path.with_name(f"{self.path.name}.lock"), wait=True))
            self.finished = find_pack(self.path, self.source) is not None
            if not self.finished:
                self._check_replaceable()
                if not self._resume():
                    self._start()
                self._file = stack.enter_context(self.images.open("r+b", buffering=0))
                self._journal = stack.enter_context((self._partial / JOURNAL).open("a", encoding="ascii"))
            self._open = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def rows(self, block: int) -> range:
        """Row numbers of a block."""
        return range(block * self.block_rows, min((block + 1) * self.block_rows, self.n))

    def offset(self, row: int) -> int:
        """Offset of a row in the file, in bytes."""
        return len(self._header) + row * self.row_bytes

    def missing(self) -> list[int]:
        """Numbers of the blocks not yet written."""
        return [block for block in range(-(-self.n // self.block_rows)) if block not in self._done]

    def write(self, block: int, rows: npt.NDArray[np.uint8]) -> None:
        """Write the rows of a block and record it as finished."""
        content = rows.tobytes()
        with self.writing():
            self._file.seek(self.offset(self.rows(block).start))
            _write_all(self._file, content)
        self.record(block, zlib.crc32(content), {})

    def record(self, block: int, crc: int, bad: Mapping[int, str]) -> None:
        """Record a block written by any process as finished; ``bad`` maps rows that could not be decoded to reasons."""
        with self.writing():
            self._append_to_journal(block=block, crc=crc, bad=list(bad.items()))
        self._done.add(block)
        self.bad.update(bad)

    def finish(self, factors: Mapping[str, Array], details: Mapping[str, Any], drop: Sequence[int] = ()) -> Pack:
        """Remove the rows in ``drop``, write the manifest, rename the pack into place and open it.

        ``factors`` have one value for each remaining row.
        """
        if missing := self.missing():
            raise ValueError(f"{len(missing)} blocks were never written")
        shape = (self.n - len(drop), *self.shape)
        if any(values.shape[:1] != shape[:1] for values in factors.values()):
            raise ValueError(f"each factor needs one value for each of the {shape[0]} rows")
        with self.writing():
            if drop:
                self._compact_rows(drop)
            self._file.close()
            self._journal.close()
            _write_arrays(self._partial / FACTORS, factors)
            of_images, of_factors = (sha256(self._partial / name) for name in (IMAGES, FACTORS))
            Manifest(shape, self.source, of_images, of_factors, details).write(self._partial)
            for name in (IMAGES, FACTORS, MANIFEST, "."):
                sync(self._partial / name)
            if self.path.exists():
                self.path.rename(self._replaced)
            self._partial.rename(self.path)
            sync(self.path.parent)
            record_as_verified(self.path, of_images)
            (self.path / JOURNAL).unlink()
            shutil.rmtree(self._replaced, ignore_errors=True)
        return open_pack(self.path)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn an OSError, such as a full disk, into a one-line DataError."""
        try:
            yield
        except OSError as error:
            if error.errno in _DISK_FULL:
                needed, free = self.offset(self.n) + _SPARE_BYTES, shutil.disk_usage(self.path.parent).free
                raise DataError(
                    f"no room for {self.path}: it takes {needed / 1e6:,.1f} MB and {free / 1e6:,.1f} MB are free: free "
                    "some, or point $WISEALE_CACHE at another disk, and run again"
                ) from None
            raise DataError(f"cannot write {error.filename or self.path}: {error.strerror or error}") from None

    def _check_replaceable(self) -> None:
        """Refuse to replace a folder that is not a pack: it may be the user's own."""
        shutil.rmtree(self._replaced, ignore_errors=True)
        if self.path.exists() and not (self.path / MANIFEST).exists():
            raise DataError(f"{self.path} is there and is not a packed set: remove it or choose another place")

    def _start(self) -> None:
        """Create an empty pack and preallocate its space, so that a full disk is reported before decoding starts."""
        shutil.rmtree(self._partial, ignore_errors=True)
        self._done, self.bad = set(), {}
        if shutil.disk_usage(self.path.parent).free < self.offset(self.n) + _SPARE_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._partial.mkdir()
        try:
            with self.images.open("wb") as file:
                reserve_space(file, self.offset(self.n))
                file.write(self._header)
        except OSError:
            shutil.rmtree(self._partial, ignore_errors=True)
            raise
        with (self._partial / JOURNAL).open("w", encoding="ascii") as self._journal:
            self._append_to_journal(**self._identity())

    def _resume(self) -> bool:
        """Reuse the blocks of an interrupted attempt whose checksums match; False if there is no such attempt."""
        journal = self._partial / JOURNAL
        try:
            require_regular(self.images)
            lines = read_text(journal, _MAX_JOURNAL).splitlines(keepends=True)
            whole = [line for line in lines if line.endswith("\n")]  # a kill may cut the last line short
            if not whole or parse_json(whole[0]) != self._identity():
                return False
            with self.images.open("r+b", buffering=0) as file:
                file.truncate(self.offset(self.n))
                file.write(self._header)
                for line in whole[1:]:
                    self._check_block(file, **parse_json(line))
            journal.write_text("".join(whole), encoding="ascii")
        except (OSError, ValueError, TypeError):
            return False
        return True

    def _check_block(self, file: BinaryIO, block: int, crc: int, bad: Sequence[tuple[int, str]]) -> None:
        rows = self.rows(block)
        file.seek(self.offset(rows.start))
        if zlib.crc32(file.read(len(rows) * self.row_bytes)) == crc:
            self._done.add(block)
            self.bad.update(bad)

    def _compact_rows(self, drop: Sequence[int]) -> None:
        """Remove dropped rows by moving the others up, in place.

        After a kill in between, the moved blocks fail their checksums and are decoded again.
        """
        kept = np.delete(np.arange(self.n), drop)
        for place in np.flatnonzero(kept != np.arange(len(kept))):
            self._file.seek(self.offset(int(kept[place])))
            row = self._file.read(self.row_bytes)
            self._file.seek(self.offset(int(place)))
            _write_all(self._file, row)
        self._file.truncate(self.offset(len(kept)))
        self._file.seek(0)
        _write_all(self._file, npy_header((len(kept), *self.shape)))

    def _identity(self) -> dict[str, Any]:
        return {"version": Manifest.version, "source": self.source, "shape": [self.n, *self.shape]}

    def _append_to_journal(self, **values: Any) -> None:
        self._journal.write(json.dumps(values) + "\n")
        self._journal.flush()


def _write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an .npz; ``np.savez`` cannot store arrays named like its own arguments (``file``)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(values), allow_pickle=False)


def _write_all(file: BinaryIO, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
