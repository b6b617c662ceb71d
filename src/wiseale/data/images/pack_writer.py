"""Write a pack atomically, resumable after a kill, in constant memory.

A pack is written to the sibling folder ``NAME.partial``: the images to a file of the final size, and one journal line
with a checksum for each finished part. The finished folder is renamed to its final name; until then an older pack of
that name stays in place. Rows are written with ``write``, not through a memory map: on a full disk ``write`` raises an
error, while a memory map kills the process.
"""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TextIO

import numpy as np

from wiseale.data.dataset import Array, Progress
from wiseale.data.images.pack import (
    FACTORS,
    IMAGES,
    JOURNAL,
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

_MAX_JOURNAL = 1 << 30  # bytes, a line for each part
_SPARE_BYTES = 1 << 20  # for journal, factors and manifest
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def pack_chunks(
    path: Path,
    n: int,
    shape: tuple[int, ...],
    chunks: Callable[[int], Iterable[Array]],
    factors: Mapping[str, Array],
    *,
    source: str = "",
    progress: Progress | None = None,
) -> Pack:
    """Pack rows generated chunk by chunk and open the pack; an intact pack of the same source is reused.

    Args:
        path: folder of the pack.
        n: total number of rows.
        shape: shape of one row, (C, H, W).
        chunks: takes the first missing row and returns uint8 arrays (k, C, H, W) from there, any k, in order.
        factors: labels or generative factors by name, each (n,).
        source: fingerprint of everything that decides the content.
        progress: called with (rows done, rows in total).
    """
    source = f"{source}{(n, *shape)}"
    if (pack := find_pack(path, source)) is not None:
        return pack
    report = progress or (lambda done, total: None)
    with PackWriter(path, n, shape, source) as writer:
        if writer.finished:
            return open_pack(path)
        row = next(iter(writer.missing()), n)
        report(row, n)
        for chunk in chunks(row) if row < n else ():
            writer.write(row, chunk)
            row += len(chunk)
            report(row, n)
        return writer.finish(factors, {})


class PackWriter:
    """Writes one pack; as a context manager it holds a lock, so that no other process writes the same pack.

    Attributes:
        finished: whether an intact pack of this source already exists, so that there is nothing to write.
        images: the file that worker processes write their rows to.
        bad: row number → reason, for rows that could not be decoded.
    """

    def __init__(self, path: Path, n: int, shape: tuple[int, ...], source: str) -> None:
        if n < 1 or min(shape) < 1:
            raise ValueError(f"a pack needs at least one row and one entry, got {n} rows of {shape}")
        self.path, self.n, self.shape, self.source = path, n, shape, source
        self._header, self._row_bytes = npy_header((n, *shape)), math.prod(shape)
        self._partial = path.with_name(f"{path.name}.partial")
        self._replaced = path.with_name(f"{path.name}.replaced")
        self._identity = {"source": source, "shape": [n, *shape]}
        self._bytes_needed = self.offset(n) + _SPARE_BYTES
        self.images = self._partial / IMAGES
        self.finished = False
        self.bad: dict[int, str] = {}
        self._done = np.zeros(n, np.bool_)
        self._open = ExitStack()
        self._file: BinaryIO
        self._journal: TextIO

    def __enter__(self) -> PackWriter:
        with self.writing(), ExitStack() as stack:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(exclusive_lock(self.path.with_name(f"{self.path.name}.lock"), wait=True))
            self.finished = find_pack(self.path, self.source) is not None
            if not self.finished:
                shutil.rmtree(self._replaced, ignore_errors=True)
                if self.path.exists() and not (self.path / MANIFEST).exists():  # it may be the user's own
                    raise DataError(f"{self.path} is there and is not a packed set: remove it or choose another place")
                if not self._resume():
                    self._start()
                self._file = stack.enter_context(self.images.open("r+b", buffering=0))
                self._journal = stack.enter_context((self._partial / JOURNAL).open("a", encoding="ascii"))
            self._open = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def missing(self) -> list[int]:
        """Numbers of the rows not yet written."""
        return np.flatnonzero(~self._done).tolist()

    def offset(self, row: int) -> int:
        """Where a row begins in the file of images."""
        return len(self._header) + row * self._row_bytes

    def write(self, row: int, chunk: Array) -> None:
        """Write the rows from ``row`` on and record them as finished."""
        if chunk.dtype != np.uint8 or chunk.shape[1:] != self.shape:
            raise ValueError(f"chunks must be uint8 with rows of {self.shape}, got {chunk.dtype} {chunk.shape}")
        if row + len(chunk) > self.n:
            raise ValueError(f"the chunks hold more than the {self.n} rows announced")
        content = chunk.tobytes()
        with self.writing():
            self._write_at(row, content)
        self.record(range(row, row + len(chunk)), zlib.crc32(content), {})

    def record(self, rows: range, crc: int, bad: Mapping[int, str]) -> None:
        """Record rows written by any process as finished; ``bad`` maps those that could not be decoded to reasons."""
        with self.writing():
            self._note(start=rows.start, stop=rows.stop, crc=crc, bad=list(bad.items()))
        self._done[rows.start : rows.stop] = True
        self.bad.update(bad)

    def finish(self, factors: Mapping[str, Array], details: Mapping[str, Any], drop: Sequence[int] = ()) -> Pack:
        """Remove the rows in ``drop``, write the manifest, rename the pack into place and open it.

        ``factors`` have one value for each remaining row.
        """
        if not self._done.all():
            raise ValueError(f"{self._done.sum()} rows were written, {self.n} were announced")
        shape = (self.n - len(drop), *self.shape)
        if any(values.shape != shape[:1] for values in factors.values()):
            raise ValueError(f"each factor needs one value for each of the {shape[0]} rows")
        with self.writing():
            if drop:  # after a kill in between, parts with moved rows fail their checksums and are decoded again
                self._remove_rows(drop)
            self._file.close()
            self._journal.close()
            _write_arrays(self._partial / FACTORS, factors)
            of_images, of_factors = (sha256(self._partial / name) for name in (IMAGES, FACTORS))
            Manifest(shape, self.source, of_images, of_factors, details).write(self._partial)
            for name in (IMAGES, FACTORS, MANIFEST):
                sync(self._partial / name)
            sync(self._partial)
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
                needed, free = self._bytes_needed, shutil.disk_usage(self.path.parent).free
                raise DataError(
                    f"no room for {self.path}: it takes {needed / 1e6:,.1f} MB and {free / 1e6:,.1f} MB are free: free "
                    "some, or point $WISEALE_CACHE at another disk, and run again"
                ) from None
            raise DataError(f"cannot write {error.filename or self.path}: {error.strerror or error}") from None

    def _start(self) -> None:
        """Create an empty pack and preallocate its space, so that a full disk is reported before decoding starts."""
        shutil.rmtree(self._partial, ignore_errors=True)
        self._done[:], self.bad = False, {}
        if shutil.disk_usage(self.path.parent).free < self._bytes_needed:
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
            self._note(**self._identity)

    def _resume(self) -> bool:
        """Reuse the parts of an interrupted attempt whose checksums match; False if there is no such attempt."""
        journal = self._partial / JOURNAL
        try:
            lines = read_text(journal, _MAX_JOURNAL).splitlines(keepends=True)
            whole = [line for line in lines if line.endswith("\n")]  # a kill may cut the last line short
            if not whole or parse_json(whole[0]) != self._identity:
                return False
            require_regular(self.images)
            with self.images.open("r+b", buffering=0) as file:
                file.truncate(self.offset(self.n))
                file.write(self._header)
                for line in whole[1:]:
                    self._check_part(file, **parse_json(line))
            journal.write_text("".join(whole), encoding="ascii")
        except (OSError, ValueError, TypeError):
            return False
        return True

    def _check_part(self, file: BinaryIO, start: int, stop: int, crc: int, bad: Sequence[tuple[int, str]]) -> None:
        if not 0 <= start <= stop <= self.n:
            raise ValueError(f"no rows {start} to {stop}")
        file.seek(self.offset(start))
        if zlib.crc32(file.read((stop - start) * self._row_bytes)) == crc:
            self._done[start:stop] = True
            self.bad.update(bad)

    def _remove_rows(self, drop: Sequence[int]) -> None:
        """Remove rows by moving the others up, in place."""
        kept = np.delete(np.arange(self.n), drop)
        for place, row in enumerate(kept.tolist()):
            if place != row:
                self._file.seek(self.offset(row))
                self._write_at(place, self._file.read(self._row_bytes))
        self._file.truncate(self.offset(len(kept)))
        self._file.seek(0)
        self._file.write(npy_header((len(kept), *self.shape)))

    def _write_at(self, row: int, content: bytes) -> None:
        self._file.seek(self.offset(row))
        rest = memoryview(content)
        while rest:
            rest = rest[self._file.write(rest) :]

    def _note(self, **values: Any) -> None:
        self._journal.write(json.dumps(values) + "\n")
        self._journal.flush()


def _write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an .npz; ``np.savez`` cannot store arrays named like its own arguments (``file``)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(values), allow_pickle=False)
