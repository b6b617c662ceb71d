"""Exclusive locks between processes; the operating system releases them when their process ends, even by a kill."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from wiseale.errors import RunError

_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_IN_FOLDER = ".lock"


@contextmanager
def exclusive_lock(path: Path, *, wait: bool | float) -> Iterator[None]:
    """Hold the lock of a folder, or of a file that is made if it is missing.

    While another process holds it: wait for it, for so many seconds at the most if ``wait`` is not a bool, then raise
    BlockingIOError. A folder's lock is the file ``.lock`` in it. Lock files stay behind, empty.
    """
    if path.is_dir():
        path = path / _IN_FOLDER
    # Without flock, filelock would leave a file that a kill does not remove: an error is better.
    lock = FileLock(path, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire(timeout=(-1 if wait else 0) if isinstance(wait, bool) else wait)
    except Timeout:
        raise BlockingIOError(errno.EAGAIN, "locked by another process", str(path)) from None
    except OSError as error:
        if error.errno in _WITHOUT_LOCKS:
            raise RunError(f"the file system of {path} has no locks: choose a folder on another one") from None
        raise
    try:
        yield
    finally:
        lock.release()


@contextmanager
def reserved(folder: Path) -> Iterator[None]:
    """Keep a folder to this process; RunError where another process works in it."""
    with ExitStack() as stack:
        try:
            stack.enter_context(exclusive_lock(folder, wait=False))
        except BlockingIOError:
            raise RunError(f"{folder} is in use by another process: wait for it, or stop it") from None
        yield


def is_locked(path: Path, wait: bool | float = False) -> bool:
    """Whether a process holds the lock, now and for as long as is waited."""
    try:
        with exclusive_lock(path, wait=wait):
            return False
    except BlockingIOError:
        return True
