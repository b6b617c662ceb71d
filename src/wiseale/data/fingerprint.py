"""A short name for the content of data, so that a run can tell whether it sees the same data again."""

from __future__ import annotations

import hashlib

import numpy as np

from wiseale.data.dataset import Array

_BLOCK = 1 << 24  # bytes hashed at a time: memory-mapped arrays are never read whole


def fingerprint(*arrays: Array) -> str:
    """SHA-256 over dtype, shape and bytes of arrays, in order."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        rows = max(1, _BLOCK // max(1, array[:1].nbytes))
        for start in range(0, len(array), rows):
            digest.update(np.ascontiguousarray(array[start : start + rows]).view(np.uint8).data)
    return digest.hexdigest()
