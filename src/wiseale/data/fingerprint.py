"""Fingerprints of data, by which a run recognises that it is given the same data again."""

from __future__ import annotations

import hashlib

import numpy as np

from wiseale.data.dataset import Array

_BLOCK = 1 << 24  # bytes hashed at a time, so that memory-mapped arrays are never read into memory whole


def fingerprint(*arrays: Array) -> str:
    """SHA-256 of the dtype, shape and bytes of arrays, in order, as a hexadecimal string.

    >>> x = np.arange(6.0)
    >>> fingerprint(x) == fingerprint(x.copy()), fingerprint(x) == fingerprint(x.reshape(2, 3))
    (True, False)
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        rows = max(1, _BLOCK // max(1, array[:1].nbytes))
        for start in range(0, len(array), rows):
            digest.update(np.ascontiguousarray(array[start : start + rows]).view(np.uint8).data)
    return digest.hexdigest()
