"""Read IDX files, the format of MNIST: a header with the shape, then unsigned bytes; raw or gzipped."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from wiseale.data.sets.fetch import open_content
from wiseale.errors import DataError

_UNSIGNED_BYTE = 0x08
_MAX_BYTES = 1 << 31  # far above any IDX dataset, and small enough to allocate
_MAX_GZIP_RATIO = 1032  # the most that deflate compresses: a header is checked against it before memory is allocated
_CHUNK_BYTES = 1 << 20


def read_idx(path: Path, axes: int) -> npt.NDArray[np.uint8]:
    """Read the array of unsigned bytes in an IDX file, which must have the given number of axes."""
    try:
        with open_content(path) as file:
            shape = _read_header(file, path, axes)
            x = np.empty(shape, np.uint8)
            _read_into(file, x.reshape(-1).data, path)
    except (zlib.error, gzip.BadGzipFile, EOFError):
        raise DataError(f"{path} is damaged or cut short: fetch it again") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    return x


def _read_header(file: IO[bytes], path: Path, axes: int) -> tuple[int, ...]:
    start = file.read(4)
    if len(start) < 4 or start[:2] != b"\0\0":
        raise DataError(f"{path} is not an IDX file: it begins with {start.hex(' ') or 'nothing'}")
    if start[2] != _UNSIGNED_BYTE:
        raise DataError(f"{path} holds IDX type 0x{start[2]:02x}: unsigned bytes (0x08) are needed")
    if start[3] != axes:
        raise DataError(f"{path} has {start[3]} axes where {axes} are needed: images and labels may be exchanged")
    sizes = file.read(4 * axes)
    if len(sizes) < 4 * axes:
        raise DataError(f"{path} is damaged or cut short: fetch it again")
    shape = struct.unpack(f">{axes}I", sizes)
    promised, on_disk = math.prod(shape), os.path.getsize(path)
    most = on_disk * _MAX_GZIP_RATIO if isinstance(file, gzip.GzipFile) else on_disk
    if promised == 0 or promised > min(most, _MAX_BYTES):
        raise DataError(
            f"{path} is damaged: its header says {' x '.join(map(str, shape))} bytes, the file has {on_disk}"
        )
    return shape


def _read_into(file: IO[bytes], buffer: memoryview, path: Path) -> None:
    filled = 0
    while filled < len(buffer):
        read = file.readinto(buffer[filled : filled + _CHUNK_BYTES])  # type: ignore[attr-defined]
        if not read:
            raise EOFError
        filled += read
    if file.read(1):
        raise DataError(f"{path} goes on after its {len(buffer)} bytes of content: fetch it again")
