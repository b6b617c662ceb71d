"""What the cache folder holds: packed datasets, remains of interrupted packing, compiled kernels; and removing it.

Everything in the cache can be made again. Its folder ``data``, where downloaded datasets lie by default, is not part of
it: nothing here touches that, nor anything that is not recognised as wiseale's own.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wiseale.data.images.pack import FACTORS, IMAGES, JOURNAL, MANIFEST, stamp_path
from wiseale.platform.locks import exclusive_lock

Kind = Literal["pack", "interrupted pack", "kernels", "remains"]

_DATA, _NATIVE = "data", "native"
_INTERRUPTED, _REPLACED, _LOCK, _STAMP = ".partial", ".replaced", ".lock", ".verified"


@dataclass(frozen=True)
class CacheEntry:
    """A file or folder of the cache.

    Attributes:
        name: its path inside the cache.
        bytes: the disk space that its content takes.
    """

    path: Path
    name: str
    kind: Kind
    bytes: int

    @property
    def is_needed(self) -> bool:
        """Whether it would have to be made again; the others are of no use to anyone."""
        return self.kind in ("pack", "kernels")


def cache_entries(root: Path) -> list[CacheEntry]:
    """Everything in the cache, in the order of names; locks and stamps count with their packs."""
    entries = []
    for path in _places(root):
        with suppress(OSError):  # another process may remove it meanwhile
            if (kind := _kind(path)) is not None:
                entries.append(CacheEntry(path, path.relative_to(root).as_posix(), kind, _bytes(path)))
    return sorted(entries, key=lambda entry: entry.name)


def remove_entry(entry: CacheEntry) -> bool:
    """Remove an entry; False where a process is packing it at this moment."""
    pack = entry.path.with_name(entry.path.name.removesuffix(_INTERRUPTED).removesuffix(_REPLACED))
    if not entry.path.is_dir():
        for path in (entry.path, entry.path.with_name(f"{entry.path.name}.sha256")):
            path.unlink(missing_ok=True)
        return True
    if entry.path.parent.name == _NATIVE:
        shutil.rmtree(entry.path)
        return True
    try:
        with exclusive_lock(pack.with_name(f"{pack.name}{_LOCK}"), wait=False):
            # Renamed first: a kill in the middle must not leave half a pack under the name of a whole one.
            remains = entry.path.with_name(f"{pack.name}{_REPLACED}")
            if remains != entry.path:
                shutil.rmtree(remains, ignore_errors=True)
                entry.path.rename(remains)
            shutil.rmtree(remains)
            if entry.kind == "pack":
                stamp_path(pack).unlink(missing_ok=True)
    except BlockingIOError:
        return False
    return True


def _places(root: Path) -> Iterator[Path]:
    for folder in root.iterdir() if root.is_dir() else ():
        if folder.is_dir() and not folder.is_symlink() and folder.name != _DATA:
            yield from (path for path in folder.iterdir() if not path.is_symlink())


def _kind(path: Path) -> Kind | None:
    """What an entry is, by its name and content; None for what is not recognised: it is never removed."""
    if path.is_dir():
        names = {file.name for file in path.iterdir()}
        if path.parent.name == _NATIVE and path.name.startswith("tmp"):
            return "remains" if all(_is_kernel(name) for name in names) else None
        if not names <= {IMAGES, FACTORS, MANIFEST, JOURNAL}:
            return None
        if path.suffix in (_INTERRUPTED, _REPLACED):
            return "interrupted pack" if path.suffix == _INTERRUPTED else "remains"
        return "pack" if {IMAGES, FACTORS, MANIFEST} <= names else None
    if path.parent.name == _NATIVE and _is_kernel(path.name) and path.suffix == ".so":
        return "kernels"
    return "remains" if path.name.startswith(".") and f"{_STAMP}.partial-" in path.name else None


def _is_kernel(name: str) -> bool:
    return name.startswith("kernels-") and name.endswith((".so", ".so.sha256"))


def _bytes(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file() and not file.is_symlink()]
    return sum(file.stat().st_size for file in files)
