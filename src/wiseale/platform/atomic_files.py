"""Atomic files and directories: written under a temporary name, synced to disk, then renamed; with checksums."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from wiseale.errors import ModelFileError

MANIFEST = "manifest.json"


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, with Unix line ends on every system."""
    temporary = path.with_name(f".{path.name}.partial")
    temporary.write_text(text, encoding="utf-8", newline="\n")
    sync(temporary)
    os.replace(temporary, path)
    sync(path.parent)


def to_json(value: Any) -> str:
    """Readable JSON; NaN and infinity are refused, because other readers refuse them too."""
    return json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def write_directory(target: Path, fill: Callable[[Path], None]) -> None:
    """Let ``fill`` write files into a temporary sibling, add a manifest of their checksums, rename it to the target.

    An existing target is replaced, and is only gone once the new one is complete on disk.
    """
    temporary = target.with_name(f".{target.name}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        fill(temporary)
        sums = {path.name: sha256(path) for path in sorted(temporary.iterdir())}
        (temporary / MANIFEST).write_text(to_json({"sha256": sums}), encoding="utf-8")
        for path in temporary.iterdir():
            sync(path)
        sync(temporary)
        replaced = target.with_name(f".{target.name}.replaced")
        shutil.rmtree(replaced, ignore_errors=True)
        if target.exists():
            os.rename(target, replaced)
        os.rename(temporary, target)
        sync(target.parent)
        shutil.rmtree(replaced, ignore_errors=True)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def rename_directory(source: Path, target: Path) -> None:
    """Rename a folder; the target may be an empty folder, which Windows does not replace by itself."""
    if target.is_dir():
        target.rmdir()
    os.rename(source, target)
    sync(target.parent)


def verify_directory(directory: Path) -> None:
    """Check every file against the manifest; a difference is an error that names the file."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        sums = dict(manifest["sha256"])
    except (OSError, ValueError, TypeError, KeyError):
        raise ModelFileError(f"{directory} has no readable {MANIFEST}: it is not complete, or not ours") from None
    for name, expected in sums.items():
        path = directory / name
        if Path(name).name != name or not path.is_file():
            raise ModelFileError(f"{directory} lacks {name}: copy the whole directory again")
        if sha256(path) != expected:
            raise ModelFileError(f"{path} is damaged: its SHA-256 is not the one in {MANIFEST}; take another copy")


def sha256(path: Path) -> str:
    """Checksum of a file."""
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
