"""Exclusive locks between processes; the operating system releases them when their process ends, even by a kill.

On Linux they are POSIX locks of an open file, which NFS passes on to its server: they hold between machines, the server
itself included. Where the file system is known to keep locks on each machine for itself, the holder's machine is also
written beside the lock, and a process on another machine is refused.
"""

from __future__ import annotations

import errno
import os
import platform
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from wiseale.errors import RunError
from wiseale.platform.file_systems import locks_of_one_machine

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    _HAS_FLOCK = False
else:
    _HAS_FLOCK = True

_POLL_SECONDS = 0.1
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_IN_FOLDER = ".lock"


@contextmanager
def exclusive_lock(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock of a folder, or of a file that is made if it is missing.

    While another process holds it: wait for it, or raise BlockingIOError. A folder's lock is the file ``.lock`` in it.
    """
    if path.is_dir():
        path = path / _IN_FOLDER  # NFS and Windows lock files that are open for writing, not folders
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        while not _acquire(descriptor, path):
            if not wait:
                raise BlockingIOError(errno.EAGAIN, "locked by another process", str(path))
            time.sleep(_POLL_SECONDS)
        doubt = locks_of_one_machine(path)
        with _owned(path, doubt) if doubt else nullcontext():
            yield
    finally:
        os.close(descriptor)  # releases the lock


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock at this moment."""
    try:
        with exclusive_lock(path, wait=False):
            return False
    except BlockingIOError:
        return True


def _acquire(descriptor: int, path: Path) -> bool:
    """Take the lock if it is free."""
    try:
        if not _HAS_FLOCK:
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        elif sys.platform == "linux":
            _acquire_posix(descriptor)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # of flock; of msvcrt and of POSIX locks
        return False
    except OSError as error:
        if error.errno in _WITHOUT_LOCKS:
            raise RunError(f"the file system of {path} has no locks: choose a folder on another one") from None
        raise
    return True


def _acquire_posix(descriptor: int) -> None:
    """Lock the whole file for this open file (not the process, so that threads exclude each other too)."""
    whole_file = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)  # struct flock
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, whole_file)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a kernel without them, as some sandboxes have
            raise
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def _owned(path: Path, file_system: str) -> Iterator[None]:
    """Name this machine as the holder of the lock; RunError where another machine is named.

    The name of this machine may have been left by a kill: whoever holds the lock on this machine takes it over.
    """
    owner, here = path.with_name(f"{path.name}.owner"), platform.node()
    try:
        with owner.open("x", encoding="utf-8") as file:  # exclusive creation holds where locks do not
            file.write(here)
    except FileExistsError:
        with suppress(FileNotFoundError):
            there = owner.read_text(encoding="utf-8")
            if there != here:
                raise RunError(
                    f"{path.parent} is in use on {there or 'another machine'}, and locks on {file_system} do not hold "
                    f"between machines: let one machine work at a time, and if that one has died, delete {owner}"
                ) from None
    try:
        yield
    finally:
        owner.unlink(missing_ok=True)
