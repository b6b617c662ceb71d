"""Atomic files and directories: written under a temporary name, synced to disk, then renamed; with checksums."""

from __future__ import annotations

import ctypes
import hashlib
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from wiseale.errors import ModelFileError
from wiseale.platform.json_files import parse_table, read_text, require_regular, to_json

MANIFEST = "manifest.json"
_STALE_SECONDS = 86_400  # after which a temporary sibling is taken for what a kill left behind
_LONGEST_STEM = 80  # characters of the target's name in a temporary one: names end at 255 bytes


def temporary_sibling(target: Path) -> Path:
    """A name beside the target that no other writer uses; what kills left there more than a day ago is removed."""
    clear_leftovers(target.parent, _stem(target), _STALE_SECONDS)
    return target.with_name(f"{_stem(target)}{os.getpid()}-{secrets.token_hex(4)}")


def clear_leftovers(folder: Path, prefix: str = ".", age_seconds: float = 0) -> None:
    """Remove temporary files and directories of killed writers; without an age nobody may be writing there."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.name.startswith(prefix) and is_temporary(path):
                with suppress(OSError):
                    if time.time() - path.lstat().st_mtime >= age_seconds:
                        _remove(path)


def is_temporary(path: Path) -> bool:
    """Whether a file or directory has the name of a temporary sibling."""
    return path.name.startswith(".") and ".partial-" in path.name


def _stem(target: Path) -> str:
    return f".{target.name[:_LONGEST_STEM]}.partial-"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary path to write a file to; it replaces the target when the block ends, and is removed on an error."""
    temporary = temporary_sibling(target)
    try:
        yield temporary
        sync(temporary)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync(target.parent)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, with Unix line ends on every system."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_directory(target: Path, fill: Callable[[Path], None], beside: Mapping[str, str] | None = None) -> None:
    """Let ``fill`` write files into a temporary sibling, add a manifest of their checksums, rename it to the target.

    ``beside`` are further text files by name, which the manifest does not list. An existing target is replaced, on
    Linux in one step: a kill leaves the old one or the new one.
    """
    temporary = temporary_sibling(target)
    try:
        make_folder(temporary)
        fill(temporary)
        sums = {path.name: sha256(path) for path in sorted(temporary.iterdir())}
        for name, text in {MANIFEST: to_json({"sha256": sums}), **(beside or {})}.items():
            (temporary / name).write_text(text, encoding="utf-8", newline="\n")
        for path in temporary.iterdir():
            sync(path)
        sync(temporary)
        replaced = _move_over(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync(target.parent)
    if replaced is not None:  # only now: a power loss may undo a rename that is not on disk, but not the removals
        shutil.rmtree(replaced, ignore_errors=True)


def make_folder(path: Path) -> None:
    """Make a new folder, and those above it that are missing; their names are on disk when this returns."""
    missing = [folder for folder in path.parents if not folder.exists()]
    path.mkdir(parents=True)
    for folder in reversed(missing):
        sync(folder.parent)


def _move_over(source: Path, target: Path) -> Path | None:
    """Rename a directory to the target's name; the new name of a target that existed."""
    if not target.exists():
        os.rename(source, target)
        return None
    if _exchange(source, target):
        return source
    replaced = temporary_sibling(target)
    os.rename(target, replaced)
    try:
        os.rename(source, target)
    except OSError:
        os.rename(replaced, target)
        raise
    return replaced


def _exchange(first: Path, second: Path) -> bool:
    """Swap two names in one step; False where the system or the file system cannot."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    at_folder, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(rename(at_folder, os.fsencode(first), at_folder, os.fsencode(second), exchange) == 0)


def rename_directory(source: Path, target: Path) -> None:
    """Rename a folder; the target may be an empty folder, which Windows does not replace by itself."""
    if target.is_dir():
        target.rmdir()
    os.rename(source, target)
    sync(target.parent)


def verify_directory(directory: Path, required: Collection[str] = ()) -> None:
    """Check every file against the manifest, which must list those required; an error names the file that differs."""
    sums = read_manifest(directory, required)
    for name in sums:
        verify_file(directory, name, sums)


def read_manifest(directory: Path, required: Collection[str]) -> dict[str, str]:
    """The checksums in a manifest, by the name of the file; those required must be among them."""
    try:
        sums = parse_table(read_text(directory / MANIFEST, 1 << 20))["sha256"]
        if not isinstance(sums, dict):
            raise ValueError
    except (OSError, ValueError, KeyError):
        raise ModelFileError(f"{directory} has no readable {MANIFEST}: it is not complete, or not ours") from None
    for name in required:
        if name not in sums:
            raise ModelFileError(f"{directory / MANIFEST} does not list {name}: it is not complete, or not ours")
    return sums


def verify_file(directory: Path, name: str, sums: Mapping[str, str]) -> None:
    """Check one file against the checksums of its directory's manifest."""
    path = directory / name
    if Path(name).name != name or not path.is_file():
        raise ModelFileError(f"{directory} lacks {name}: copy the whole directory again")
    if sha256(path) != sums[name]:
        raise ModelFileError(f"{path} is damaged: its SHA-256 is not the one in {MANIFEST}; take another copy")


def sha256(path: Path) -> str:
    """Checksum of a file; OSError for what is not a regular file (a pipe would block)."""
    require_regular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on disk; Windows cannot do the latter."""
    posix = hasattr(os, "O_DIRECTORY")
    if not posix and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY if posix else os.O_RDWR)  # Windows syncs only what may be written
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def reserve_space(file: BinaryIO, size: int) -> None:
    """Make a file this long, of zeros; on Linux its disk space is reserved, so that a full disk is an error now."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)
