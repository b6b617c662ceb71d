"""Write a pack atomically, resumable after a kill, in constant memory.

A pack is written to the sibling folder ``NAME.partial``: the images to files of the final size, and one journal line
with a checksum for each finished block of rows. The finished folder is renamed to its final name; until then an older
pack of that name stays in place. Blocks are written with ``write``, not through a memory map: on a full disk ``write``
raises an error, while a memory map kills the process.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from wiseale.data.dataset import Array
from wiseale.data.packs.files import PackFiles
from wiseale.data.packs.layout import IMAGES, Layout
from wiseale.data.packs.manifest import MANIFEST, ONE_FILE, SHARDED, Manifest, Sharding, shards_fingerprint
from wiseale.data.packs.reader import FACTORS, FACTORS_FOLDER, Pack, factor_name, find_pack, open_pack
from wiseale.data.packs.stamps import Stamp, record_as_verified
from wiseale.errors import DataError
from wiseale.platform.atomic_files import sha256, sync
from wiseale.platform.json_files import parse_json, read_text
from wiseale.platform.locks import exclusive_lock

JOURNAL = "journal.jsonl"
_MAX_JOURNAL = 1 << 30  # bytes, a line for each block
_SPARE_BYTES = 1 << 20  # for journal, factors and manifest
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class PackWriter:
    """Writes one pack; as a context manager it holds a lock, so that no other process writes the same pack.

    Attributes:
        finished: whether an intact pack of this source already exists, so that there is nothing to write.
        layout: the files of the pack and its blocks.
        bad: row number → reason, for rows that could not be decoded.
    """

    def __init__(self, path: Path, n: int, shape: tuple[int, ...], source: str) -> None:
        if n < 1 or min(shape) < 1:
            raise ValueError(f"a pack needs at least one row and one entry, got {n} rows of {shape}")
        self.path, self.n, self.shape, self.source = path, n, shape, source
        self.layout = Layout.of(n, shape)
        self.finished = False
        self.bad: dict[int, str] = {}
        self._partial = path.with_name(f"{path.name}.partial")
        self._replaced = path.with_name(f"{path.name}.replaced")
        self._files = PackFiles(self._partial, self.layout)
        self._done: set[int] = set()
        self._open = ExitStack()
        self._journal: TextIO

    def __enter__(self) -> PackWriter:
        with self.writing(), ExitStack() as stack:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(exclusive_lock(self.path.with_name(f"{self.path.name}.lock"), wait=True))
            self.finished = find_pack(self.path, self.source) is not None
            if not self.finished:
                self._check_replaceable()
                if not self._resume():
                    self._start()
                stack.callback(self._files.close)
                self._journal = stack.enter_context((self._partial / JOURNAL).open("a", encoding="ascii"))
            self._open = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def rows(self, block: int) -> range:
        """Row numbers of a block."""
        return self.layout.rows(block)

    def place(self, row: int) -> tuple[str, int]:
        """The path of a row's file, and where in it the row begins: worker processes write their blocks there."""
        name, offset = self.layout.place(row)
        return str(self._partial / name), offset

    def missing(self) -> list[int]:
        """Numbers of the blocks not yet written."""
        return [block for block in range(self.layout.blocks) if block not in self._done]

    def write(self, block: int, rows: npt.NDArray[np.uint8]) -> None:
        """Write the rows of a block and record it as finished."""
        content = rows.tobytes()
        with self.writing():
            self._files.write(self.rows(block).start, content)
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
            if drop:  # after a kill in between, the moved blocks fail their checksums and are decoded again
                self._files.remove(list(drop))
            self._journal.close()
            manifest, sums = self._describe(shape, factors, details)
            self._files.close()
            manifest.write(self._partial)
            for file in sorted(self._partial.rglob("*")):
                if file.name != JOURNAL:
                    sync(file)
            sync(self._partial)
            if self.path.exists():
                self.path.rename(self._replaced)
            self._partial.rename(self.path)
            sync(self.path.parent)
            record_as_verified(self.path, {name: Stamp.of((self.path / name).stat(), of) for name, of in sums.items()})
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
                needed, free = self._needed(), shutil.disk_usage(self.path.parent).free
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
        if shutil.disk_usage(self.path.parent).free < self._needed():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._partial.mkdir()
        self._files.create()
        with (self._partial / JOURNAL).open("w", encoding="ascii") as self._journal:
            self._append_to_journal(**self._identity())

    def _resume(self) -> bool:
        """Reuse the blocks of an interrupted attempt whose checksums match; False if there is no such attempt."""
        journal = self._partial / JOURNAL
        try:
            lines = read_text(journal, _MAX_JOURNAL).splitlines(keepends=True)
            whole = [line for line in lines if line.endswith("\n")]  # a kill may cut the last line short
            if not whole or parse_json(whole[0]) != self._identity():
                return False
            self._files.restore()
            for line in whole[1:]:
                self._check_block(**parse_json(line))
            journal.write_text("".join(whole), encoding="ascii")
        except (OSError, ValueError, TypeError):
            return False
        return True

    def _check_block(self, block: int, crc: int, bad: Sequence[tuple[int, str]]) -> None:
        rows = self.rows(block)
        if zlib.crc32(self._files.read(rows.start, len(rows))) == crc:
            self._done.add(block)
            self.bad.update(bad)

    def _describe(
        self, shape: tuple[int, ...], factors: Mapping[str, Array], details: Mapping[str, Any]
    ) -> tuple[Manifest, dict[str, str]]:
        """Write the factors and what checks them and the rows; the manifest, and the SHA-256 of files to be stamped."""
        layout = self._files.layout
        if layout.shard_rows is None:
            _write_arrays(self._partial / FACTORS, factors)
            of_images, of_factors = (sha256(self._partial / name) for name in (IMAGES, FACTORS))
            return Manifest(shape, self.source, of_images, of_factors, details), {IMAGES: of_images}
        (self._partial / FACTORS_FOLDER).mkdir(exist_ok=True)
        for number, values in enumerate(factors.values()):
            np.save(self._partial / factor_name(number), values, allow_pickle=False)
        of_each = {name: sha256(self._partial / factor_name(number)) for number, name in enumerate(factors)}
        shards = self._files.write_checksums()
        sharding = Sharding(layout.shard_rows, layout.checked().block_rows, shards, of_each)
        sums = {file.name: shard.sha256 for file, shard in zip(layout.files(), shards, strict=True)}
        sums |= {factor_name(number): of for number, of in enumerate(of_each.values())}
        fingerprint = shards_fingerprint(shape, shards)
        return Manifest(shape, self.source, fingerprint, "", details, version=SHARDED, sharding=sharding), sums

    def _needed(self) -> int:
        """Bytes of disk space that the pack takes."""
        return sum(file.bytes for file in self.layout.files()) + _SPARE_BYTES

    def _identity(self) -> dict[str, Any]:
        shards = {"shard_rows": self.layout.shard_rows} if self.layout.shard_rows else {}
        version = SHARDED if shards else ONE_FILE
        return {"version": version, "source": self.source, "shape": [self.n, *self.shape], **shards}

    def _append_to_journal(self, **values: Any) -> None:
        self._journal.write(json.dumps(values) + "\n")
        self._journal.flush()


def _write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an .npz; ``np.savez`` cannot store arrays named like its own arguments (``file``)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(values), allow_pickle=False)
