"""A sharded pack of very many rows that takes almost no disk space, for measuring and testing how it is opened."""

from __future__ import annotations

import hashlib
import os
import zlib
from pathlib import Path

import numpy as np

from wiseale.data.packs.block_checks import checksums_name
from wiseale.data.packs.layout import Layout
from wiseale.data.packs.manifest import SHARDED, Manifest, Shard, Sharding, shards_fingerprint


def write_sparse_pack(folder: Path, n: int, shape: tuple[int, ...]) -> int:
    """A pack of n rows, zeros in files without disk blocks but for a few random rows at the start and at the end.

    Shards with the same content share one file of checksums by hard links. Returns the number of shards.
    """
    layout = Layout.of(n, shape).checked()
    assert layout.shard_rows is not None
    few = np.random.default_rng(0).integers(0, 256, (layout.block_rows, *shape), np.uint8).tobytes()
    shards: list[Shard] = []
    made: dict[str, Path] = {}
    zero = zlib.crc32(bytes(len(few)))
    files = layout.files()
    (folder / files[0].name).parent.mkdir(parents=True)
    for file in files:
        with (folder / file.name).open("wb") as target:
            target.truncate(file.bytes)
            if file in (files[0], files[-1]):
                target.write(few)
        blocks = np.full(-(-(file.stop - file.start) // layout.block_rows), zero, "<u4")
        short = (file.stop - file.start) % layout.block_rows
        if short:
            blocks[-1] = zlib.crc32(bytes(short * layout.row_bytes))
        if file in (files[0], files[-1]):
            blocks[0] = zlib.crc32(few)
        content = blocks.tobytes()
        digest = hashlib.sha256(content).hexdigest()
        if digest in made:
            os.link(made[digest], folder / checksums_name(file.name))
        else:
            made[digest] = folder / checksums_name(file.name)
            made[digest].write_bytes(content)
        of_rows = hashlib.sha256(f"stand-in for the SHA-256 of {file.bytes} bytes {digest}".encode()).hexdigest()
        shards.append(Shard(file.stop - file.start, of_rows, digest))
    sharding = Sharding(layout.shard_rows, layout.block_rows, tuple(shards), {})
    fingerprint = shards_fingerprint((n, *shape), shards)
    Manifest((n, *shape), "made for a test", fingerprint, "", {}, version=SHARDED, sharding=sharding).write(folder)
    return len(shards)
