"""Makes this interpreter resemble one on Windows, as far as wiseale is concerned.

Python imports it at the start of every process that has this folder on PYTHONPATH.
"""

import builtins
import errno
import fcntl
import io
import mmap
import os
import shutil
import signal
import subprocess  # noqa: F401 - the standard library chooses its POSIX code when it is imported: before what follows
import sys
import tempfile  # noqa: F401
import types
from pathlib import Path

flock, F_GETFL, LOCK = fcntl.flock, fcntl.F_GETFL, fcntl.LOCK_EX | fcntl.LOCK_NB
status_flags = fcntl.fcntl
open_descriptor, fsync, rename, open_file = os.open, os.fsync, os.rename, io.open

for module in ("fcntl", "resource", "pwd", "grp"):
    sys.modules[module] = None  # importing it is an ImportError
for owner, names in {
    os: "sched_getaffinity sched_setaffinity fork forkpty getuid geteuid getgid getegid setsid killpg posix_fadvise "
    "posix_fallocate O_DIRECTORY O_NOFOLLOW O_CLOEXEC fchmod",
    signal: "SIGHUP SIGKILL SIGUSR1 SIGUSR2 SIGALRM alarm setitimer",
    mmap: "MADV_WILLNEED MADV_RANDOM MADV_SEQUENTIAL",
}.items():
    for name in names.split():
        if hasattr(owner, name):
            delattr(owner, name)
shutil._use_fd_functions = False


def lock_bytes(descriptor, mode, count):
    """Like msvcrt.locking: a lock that is held is a PermissionError."""
    try:
        flock(descriptor, LOCK)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None


sys.modules["msvcrt"] = types.SimpleNamespace(locking=lock_bytes, LK_NBLCK=2)


def open_files_only(path, *arguments, **options):
    """Windows cannot open a folder."""
    if not isinstance(path, int) and os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return open_descriptor(path, *arguments, **options)


def sync_writable_files_only(descriptor):
    """Windows cannot sync a file that was opened for reading."""
    number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
    if status_flags(number, F_GETFL) & (os.O_RDWR | os.O_WRONLY) == 0:
        raise OSError(errno.EBADF, "Bad file descriptor")
    fsync(number)


def rename_to_free_names_only(source, target, **options):
    """Windows does not replace what is there."""
    if os.path.exists(target):
        raise FileExistsError(errno.EEXIST, "File exists", str(target))
    rename(source, target, **options)


def open_without_proc(file, *arguments, **options):
    """There is no /proc."""
    if isinstance(file, str | Path) and str(file).startswith("/proc"):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(file))
    return open_file(file, *arguments, **options)


os.open, os.fsync, os.rename = open_files_only, sync_writable_files_only, rename_to_free_names_only
builtins.open = io.open = open_without_proc
