"""Packed sets: images stored decoded, at the size the networks use, in memory-mapped files.

:func:`pack_chunks` packs rows generated chunk by chunk, :mod:`~wiseale.data.packs.image_pack` packs image files, and
:func:`open_pack` opens either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wiseale.data.dataset import Array, Progress
from wiseale.data.packs.manifest import Manifest
from wiseale.data.packs.reader import Pack, find_pack, open_pack
from wiseale.data.packs.writer import PackWriter

__all__ = ["Manifest", "Pack", "PackWriter", "find_pack", "open_pack", "pack_chunks"]


def pack_chunks(
    path: Path,
    n: int,
    shape: tuple[int, ...],
    chunks: Iterable[Array] | Callable[[int], Iterable[Array]],
    factors: Mapping[str, Array],
    *,
    source: str = "",
    details: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Pack:
    """Pack rows generated chunk by chunk and open the pack; an intact pack of the same source is reused.

    Args:
        path: folder of the pack.
        n: total number of rows.
        shape: shape of one row, (C, H, W).
        chunks: uint8 arrays (k, C, H, W), any k, in order; or a function that takes the first missing row and returns
            the chunks from there, which makes packing resumable.
        factors: labels or generative factors by name, each (n,).
        source: fingerprint of everything that decides the content.
        details: JSON values stored in the manifest.
        progress: called with (rows done, rows in total).
    """
    source = f"{source}{(n, *shape)}"
    if (pack := find_pack(path, source)) is not None:
        return pack
    with PackWriter(path, n, shape, source) as writer:
        if writer.finished:
            return open_pack(path)
        if missing := writer.missing():
            start = writer.rows(missing[0]).start if callable(chunks) else 0
            report = progress or (lambda done, total: None)
            report(start, n)
            stream = chunks(start) if callable(chunks) else chunks
            for block, rows in enumerate(_regroup(stream, writer, start), start // writer.layout.block_rows):
                writer.write(block, rows)
                report(writer.rows(block).stop, n)
        return writer.finish(factors, details or {})


def _regroup(chunks: Iterable[Array], writer: PackWriter, start: int) -> Iterator[npt.NDArray[np.uint8]]:
    """Regroup chunks of any length into the writer's blocks; every block is a view of one reused buffer."""
    buffer = np.empty((writer.layout.block_rows, *writer.shape), np.uint8)
    filled, row = 0, start
    for chunk in chunks:
        if chunk.dtype != np.uint8 or chunk.shape[1:] != writer.shape:
            raise ValueError(f"chunks must be uint8 with rows of {writer.shape}, got {chunk.dtype} {chunk.shape}")
        if row + len(chunk) > writer.n:
            raise ValueError(f"the chunks hold more than the {writer.n} rows announced")
        taken = 0
        while taken < len(chunk):
            part = chunk[taken : taken + writer.layout.block_rows - filled]
            buffer[filled : filled + len(part)] = part
            filled, row, taken = filled + len(part), row + len(part), taken + len(part)
            if filled == writer.layout.block_rows or row == writer.n:
                yield buffer[:filled]
                filled = 0
    if row < writer.n:
        raise ValueError(f"the chunks hold {row} rows, {writer.n} were announced")
