"""Interfere with a process at its n-th change of a folder: an audit hook sees every file Python opens or renames."""

from __future__ import annotations

import mmap
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

# Not shutil.rmtree: its removals are seen one by one, and no disk can make rmtree(ignore_errors=True) itself raise.
_CHANGES = {"os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.chmod", "os.truncate"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class FileEvents:
    """Counts the changes that a forked process makes under a folder; the count is shared with its parent."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.fspath(folder)
        self._shared = mmap.mmap(-1, 8)

    @property
    def count(self) -> int:
        """Changes so far."""
        return int.from_bytes(self._shared[:8], "little")

    def at(self, number: int, act: Callable[[], None]) -> Callable[[], None]:
        """What a forked process has to call so that ``act`` happens before its change of that number, from 0."""

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            if not self._is_change(event, arguments):
                return
            count = self.count
            self._shared[:8] = (count + 1).to_bytes(8, "little")
            if count == number:
                act()

        def install() -> None:
            self._shared[:8] = bytes(8)
            sys.addaudithook(hook)

        return install

    def _is_change(self, event: str, arguments: tuple[object, ...]) -> bool:
        if event == "open":
            path, mode, flags = arguments
            changes = bool(isinstance(flags, int) and flags & _WRITING) or (isinstance(mode, str) and mode[:1] in "wax")
        elif event in _CHANGES:
            path, changes = arguments[0], True
        else:
            return False
        return changes and isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith(self._folder)


def kill() -> None:
    """End this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def fail(code: int) -> Callable[[], None]:
    """Raise the OSError of this number."""

    def act() -> None:
        raise OSError(code, os.strerror(code))

    return act
