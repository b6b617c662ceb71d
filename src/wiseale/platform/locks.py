"""Exclusive locks between processes; the operating system releases them when their process ends, even by a kill."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    _HAS_FLOCK = False
else:
    _HAS_FLOCK = True

_POLL_SECONDS = 0.1


@contextmanager
def exclusive_lock(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock of a folder, or of a file that is made if it is missing.

    While another process holds it: wait for it, or raise BlockingIOError.
    """
    if not _HAS_FLOCK and path.is_dir():
        path = path / ".lock"  # Windows locks bytes of files, not folders
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o666)
    try:
        while not _acquire(descriptor):
            if not wait:
                raise BlockingIOError(errno.EAGAIN, "locked by another process", str(path))
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)  # releases the lock


def _acquire(descriptor: int) -> bool:
    """Take the lock if it is free."""
    try:
        if _HAS_FLOCK:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    except (BlockingIOError, PermissionError):  # of flock; of msvcrt
        return False
    return True
