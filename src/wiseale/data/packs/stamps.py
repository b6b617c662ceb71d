"""Which files of a pack were last found right, and as which versions of them.

Beside the folder of a pack, ``NAME.verified`` holds size, times, inode and checksum of each of its large files when
they were verified. A file is verified again whenever it differs from that: after any write to it, a copy or a move to
another disk.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path

from wiseale.data.packs.layout import IMAGES
from wiseale.platform.atomic_files import write_text
from wiseale.platform.json_files import parse_table, read_text, to_json


@dataclass(frozen=True)
class Stamp:
    """What changes when a file is written, copied or replaced, and the checksum it had then."""

    size: int
    modified_ns: int
    changed_ns: int
    inode: int
    sha256: str

    @classmethod
    def of(cls, status: os.stat_result, sha256: str) -> Stamp:
        """The stamp of a file with this status now."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, sha256)


def last_verified(folder: Path) -> dict[str, Stamp]:
    """Stamps by the name of the file; none where they cannot be read. Earlier versions wrote only that of ``x.npy``."""
    try:
        stored = parse_table(read_text(stamp_path(folder)))
        if "sha256" in stored:
            return {IMAGES: Stamp(**stored)}
        return {name: Stamp(*values) for name, values in stored.items()}
    except (OSError, ValueError, TypeError):
        return {}


def record_as_verified(folder: Path, stamps: Mapping[str, Stamp]) -> None:
    """Keep the stamps of files whose checksums are right; where they cannot be written, every opening checks them."""
    with suppress(OSError):
        write_text(stamp_path(folder), to_json({name: astuple(stamp) for name, stamp in stamps.items()}))


def stamp_path(folder: Path) -> Path:
    """The file with the stamps of a pack's files."""
    return folder.with_name(f"{folder.name}.verified")
