"""A disk that loses power: records what a process writes and syncs, and builds the states a crash may leave behind.

The recorder looks at the folder before and after every sync, rename, removal and new folder, so that files written by
native code are seen as well. A state is made of what was synced plus some of what was not: the data of a file that was
never synced may be lost, zeros or cut, and each change of a folder's names may be lost until that folder is synced.
No order between unsynced changes is assumed, which is less than any file system promises.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Tree = dict[str, bytes | None]
"""Files by relative path, with their content; None for a folder."""

_HOOKED = ("rename", "replace", "unlink", "remove", "rmdir", "mkdir")
_KEPT_NAMES = (".stdout", ".stderr")  # of the harness


@dataclass(frozen=True)
class _Change:
    """Names that one call removed from and added to a folder, by inode."""

    folder: int
    removed: frozenset[str]
    added: dict[str, int]


@dataclass
class Disk:
    """A folder as it is, and as much of it as is known to be on disk."""

    root: Path
    names: dict[int, dict[str, int]] = field(default_factory=dict)
    data: dict[int, bytes] = field(default_factory=dict)
    synced_names: dict[int, dict[str, int]] = field(default_factory=dict)
    synced_data: dict[int, bytes] = field(default_factory=dict)
    pending: list[_Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._held: dict[int, int] = {}  # open files, so that the system does not use their inodes again
        self._root = os.stat(self.root).st_ino
        self.names, self.data = self._look()
        self.synced_names = {folder: dict(names) for folder, names in self.names.items()}
        self.synced_data = dict(self.data)

    def observe(self, *, one_call: bool) -> None:
        """Take in what has changed since the last look, as one change for each folder or for each name."""
        names, data = self._look()
        for folder, now in names.items():
            before = self.names.get(folder, {})
            removed = frozenset(name for name in before if now.get(name) != before[name])
            added = {name: inode for name, inode in now.items() if before.get(name) != inode}
            if one_call and (removed or added):
                self.pending.append(_Change(folder, removed, added))
            elif not one_call:
                self.pending += [_Change(folder, frozenset([name]), {}) for name in removed - added.keys()]
                self.pending += [_Change(folder, frozenset([name]) & removed, {name: i}) for name, i in added.items()]
        self.names, self.data = names, {**self.data, **data}

    def synced(self, inode: int) -> None:
        """A file's content, or the names in a folder, are on disk now."""
        if inode in self.names:
            for change in self.pending:
                if change.folder == inode:
                    _apply(self.synced_names, change)
            self.pending = [change for change in self.pending if change.folder != inode]
        elif inode in self.data:
            self.synced_data[inode] = self.data[inode]

    def states(self) -> Iterator[Tree]:
        """The states that a loss of power at this moment may leave; the first is that of a mere kill."""
        alive = self._reachable(self.names) | self._reachable(self.synced_names)
        pending = [change for change in self.pending if change.folder in alive]
        unsynced = [i for i, content in self.data.items() if i in alive and self.synced_data.get(i) != content]
        lost = {inode: self.synced_data.get(inode, b"") for inode in unsynced}
        yield self._tree(pending, {})
        yield self._tree([], lost)
        yield self._tree(pending, lost)
        yield self._tree(pending, {i: self._kept(i).ljust(len(self.data[i]), b"\0") for i in unsynced})
        yield self._tree(
            pending, {i: self.data[i][: max(len(self._kept(i)), len(self.data[i]) // 2)] for i in unsynced}
        )
        for number, change in enumerate(pending):
            yield self._tree([change], lost)
            yield self._tree(pending[: number + 1], lost)
            yield self._tree(pending[:number] + pending[number + 1 :], {})
        for inode in unsynced:
            yield self._tree(pending, {inode: lost[inode]})

    def _kept(self, inode: int) -> bytes:
        """What no loss of power takes from a file: what was synced, if lines were only added to it since."""
        synced = self.synced_data.get(inode, b"")
        return synced if self.data[inode].startswith(synced) else b""

    def _tree(self, applied: list[_Change], instead: dict[int, bytes]) -> Tree:
        names = {folder: dict(inside) for folder, inside in self.synced_names.items()}
        for change in applied:
            _apply(names, change)
        tree: Tree = {}

        def add(folder: int, path: str) -> None:
            for name, inode in names.get(folder, {}).items():
                is_file = inode in self.data
                tree[path + name] = instead.get(inode, self.data[inode]) if is_file else None
                if not is_file:
                    add(inode, f"{path}{name}/")

        add(self._root, "")
        return tree

    def _reachable(self, names: dict[int, dict[str, int]]) -> set[int]:
        found, waiting = set(), [self._root]
        while waiting:
            inode = waiting.pop()
            found.add(inode)
            waiting += names.get(inode, {}).values()
        return found

    def _look(self) -> tuple[dict[int, dict[str, int]], dict[int, bytes]]:
        names: dict[int, dict[str, int]] = {}
        data: dict[int, bytes] = {}
        for folder, inside, files in os.walk(self.root):
            inode = self._hold(folder)
            if inode is None:
                continue
            entries = {name: self._hold(os.path.join(folder, name)) for name in (*inside, *files)}
            names[inode] = {name: i for name, i in entries.items() if i is not None and name not in _KEPT_NAMES}
            for name in files:
                if (found := entries[name]) is not None:
                    data[found] = os.pread(self._held[found], 1 << 24, 0)
        return names, data

    def _hold(self, path: str) -> int | None:
        try:
            inode = os.stat(path).st_ino
            if inode not in self._held:
                self._held[inode] = os.open(path, os.O_RDONLY)
        except OSError:  # another thread was quicker
            return None
        return inode


def _apply(names: dict[int, dict[str, int]], change: _Change) -> None:
    inside = names.setdefault(change.folder, {})
    for name in change.removed:
        inside.pop(name, None)
    inside.update(change.added)


def record(root: Path, keep: Callable[[Tree], None]) -> None:
    """From now on, give every state that a loss of power could leave of a folder to ``keep``; for a forked process."""
    disk, lock = Disk(root), threading.RLock()
    fsync = os.fsync

    def note() -> None:
        for tree in disk.states():
            keep(tree)

    def changing(call: Callable[..., Any]) -> Callable[..., Any]:
        def hooked(*arguments: Any, **options: Any) -> Any:
            with lock:
                disk.observe(one_call=False)
                note()
                try:
                    return call(*arguments, **options)
                finally:
                    disk.observe(one_call=True)

        return hooked

    def syncing(descriptor: int) -> None:
        with lock:
            disk.observe(one_call=False)
            note()
            fsync(descriptor)
            disk.synced(os.fstat(descriptor).st_ino)

    from wiseale.platform import atomic_files

    for name in _HOOKED:
        setattr(os, name, changing(getattr(os, name)))
    os.fsync = syncing
    atomic_files._exchange = changing(atomic_files._exchange)
