"""The files of a pack that is being written, addressed by row."""

from __future__ import annotations

import hashlib
import shutil
import zlib
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from wiseale.data.packs.block_checks import checksums_name
from wiseale.data.packs.layout import Layout
from wiseale.data.packs.manifest import Shard
from wiseale.platform.atomic_files import reserve_space
from wiseale.platform.json_files import require_regular

_MOST_OPEN = 2  # removing rows reads one shard and writes another


class PackFiles:
    """Reads and writes rows in the files of a layout; at most two files are open at a time."""

    def __init__(self, folder: Path, layout: Layout) -> None:
        self.folder, self.layout = folder, layout
        self._open: dict[str, BinaryIO] = {}

    def create(self) -> None:
        """Make empty files and reserve their space; if that fails, the folder is removed."""
        self.close()
        try:
            for row_file in self.layout.files():
                (self.folder / row_file.name).parent.mkdir(parents=True, exist_ok=True)
                with (self.folder / row_file.name).open("wb") as file:
                    reserve_space(file, row_file.bytes)
                    file.write(self.layout.header)
        except OSError:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def restore(self) -> None:
        """Give files of an interrupted attempt their length and header again; OSError where one is missing."""
        for row_file in self.layout.files():
            require_regular(self.folder / row_file.name)
            with (self.folder / row_file.name).open("r+b", buffering=0) as file:
                file.truncate(row_file.bytes)
                file.write(self.layout.header)

    def read(self, row: int, count: int) -> bytes:
        """Some rows, all in one file."""
        file = self._at(row)
        return file.read(count * self.layout.row_bytes)

    def write(self, row: int, content: bytes) -> None:
        """Write rows that are all in one file."""
        file, rest = self._at(row), memoryview(content)
        while rest:
            rest = rest[file.write(rest) :]

    def remove(self, drop: list[int]) -> None:
        """Remove rows by moving the others up, in place; files that become empty are deleted."""
        kept = np.delete(np.arange(self.layout.n), drop)
        for place in np.flatnonzero(kept != np.arange(len(kept))).tolist():
            self.write(place, self.read(int(kept[place]), 1))
        self.close()
        before = self.layout.files()
        self.layout = replace(self.layout, n=len(kept))
        self.restore()
        for row_file in before[len(self.layout.files()) :]:
            (self.folder / row_file.name).unlink()

    def write_checksums(self) -> tuple[Shard, ...]:
        """Write the checksums of every shard's blocks; what the manifest says of the shards."""
        shards, layout = [], self.layout.checked()
        for row_file in layout.files():
            whole, blocks = hashlib.sha256(), []
            for row in range(row_file.start, row_file.stop, layout.block_rows):
                content = self.read(row, min(layout.block_rows, row_file.stop - row))
                whole.update(content)
                blocks.append(zlib.crc32(content))
            sums = np.array(blocks, "<u4").tobytes()
            (self.folder / checksums_name(row_file.name)).write_bytes(sums)
            rows = row_file.stop - row_file.start
            shards.append(Shard(rows, whole.hexdigest(), hashlib.sha256(sums).hexdigest()))
        return tuple(shards)

    def close(self) -> None:
        """Close the open files."""
        while self._open:
            self._open.popitem()[1].close()

    def _at(self, row: int) -> BinaryIO:
        """The file of a row, at the row's first byte."""
        name, offset = self.layout.place(row)
        if name not in self._open:
            if len(self._open) == _MOST_OPEN:
                self._open.pop(next(iter(self._open))).close()
            self._open[name] = (self.folder / name).open("r+b", buffering=0)
        self._open[name].seek(offset)
        return self._open[name]
