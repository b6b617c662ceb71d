"""Whether a compiled library may be loaded: only the user could have written it, and it is the file that was built.

Loading a library runs its code, and a truncated one ends the process with SIGBUS. Checks of owners and permissions are
skipped on systems that have none (Windows).
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path


def doubt_about_folder(folder: Path) -> str | None:
    """Why libraries in this folder may have been written by somebody else, in words; None if they cannot have been."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return f"{folder} is a symbolic link"
    if not _is_own(status):
        return f"{folder} belongs to another user"
    if _others_may_write(status):
        return f"other users may write to {folder} (chmod 700 it)"
    for parent in folder.absolute().parents:  # whoever may rename one of them may put another folder in its place
        if (problem := _doubt_about_parent(parent)) is not None:
            return problem
    return None


def _doubt_about_parent(parent: Path) -> str | None:
    """Groups are trusted here: many systems give every user one of their own, and let it write to their folders."""
    status = parent.stat()
    if hasattr(os, "geteuid") and status.st_uid not in (0, os.geteuid()):
        return f"{parent} belongs to another user"
    if hasattr(os, "geteuid") and status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        return f"other users may write to {parent}"
    return None


def is_intact(path: Path) -> bool:
    """Whether the file is the user's own and has the SHA-256 that was recorded when it was built."""
    try:
        private = all(_is_private_file(file) for file in (path, _record(path)))
        return private and _record(path).read_text(encoding="ascii").strip() == _sha256(path)
    except (OSError, UnicodeDecodeError):
        return False


def install(built: Path, path: Path) -> None:
    """Move a library that was just built to its place, with its SHA-256 beside it."""
    built.chmod(0o700)
    record = _record(built)
    record.write_text(_sha256(built) + "\n", encoding="ascii")
    record.chmod(0o600)
    for file, target in ((built, path), (record, _record(path))):
        with file.open("rb+") as opened:
            os.fsync(opened.fileno())
        os.replace(file, target)


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_private_file(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and _is_own(status) and not _others_may_write(status)


def _is_own(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def _others_may_write(status: os.stat_result) -> bool:
    return hasattr(os, "geteuid") and bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
