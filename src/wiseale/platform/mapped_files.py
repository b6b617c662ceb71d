"""Files mapped into memory: several of them one after another as one array, and the mapping behind an array."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ALIGNMENT = 1 << 16
"""A multiple of every system's page size in bytes: joined files but the last are a multiple of it long."""

_MAP_FIXED = 0x10  # the same number on Linux, macOS and the BSDs


def can_join() -> bool:
    """Whether files can be mapped side by side: on 64-bit systems other than Windows."""
    return hasattr(mmap, "MAP_ANON") and sys.maxsize > 1 << 32


def join_files(paths: Sequence[Path], sizes: Sequence[int], mapping_type: type[mmap.mmap] = mmap.mmap) -> mmap.mmap:
    """A read-only mapping of files one after another; all sizes but the last are multiples of :data:`ALIGNMENT`.

    An address range for all of them is reserved by an empty mapping, and each file is mapped to its place in it, so
    that the memory is contiguous: gathering rows costs what it costs in one file. No file stays open. The caller has
    checked that the files have these sizes.
    """
    assert all(size % ALIGNMENT == 0 for size in sizes[:-1])
    reserved = mapping_type(-1, sum(sizes), flags=mmap.MAP_PRIVATE | mmap.MAP_ANON, prot=mmap.PROT_READ)
    address = address_of(reserved)
    map_file = ctypes.CDLL(None, use_errno=True).mmap
    map_file.restype = ctypes.c_void_p
    map_file.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    for path, size in zip(paths, sizes, strict=True):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            found = map_file(address, size, mmap.PROT_READ, mmap.MAP_SHARED | _MAP_FIXED, descriptor, 0)
        finally:
            os.close(descriptor)
        if found != address:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
        address += size
    return reserved


def address_of(mapping: mmap.mmap) -> int:
    """The address of a mapping's first byte."""
    return int(np.frombuffer(mapping, np.uint8, 1).ctypes.data)


def mapping_of(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """The mapping in whose memory an array, or the array that it is a view of, lies; None where there is none."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    return owner if isinstance(owner, mmap.mmap) else None
