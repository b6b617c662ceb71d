"""Image files in a folder or a zip: which there are, in a fixed order, and whether the zip can be trusted.

Nothing is decoded here, and a zip is never extracted: its members are read where they lie.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from wiseale.errors import DataError

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp"})
_MAX_MEMBER_BYTES = 1 << 28  # unpacked size of one image in a zip
_MAX_RATIO, _RATIO_FROM_BYTES = 200, 1 << 24  # larger members that shrink more than this are bombs, not photographs
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_ENCRYPTED = 0x1


class Entry(NamedTuple):
    """One image file: its name relative to the folder or zip, with ``/``; size in bytes; time or checksum; place."""

    name: str
    size: int
    stamp: int
    place: tuple[int, ...] = ()  # in a zip: offset, packed size, size, CRC, method

    def fingerprint(self) -> bytes:
        """What changes when the file does."""
        return f"{self.name}\0{self.size}\0{self.stamp}\n".encode(errors="surrogatepass")


@dataclass(frozen=True)
class Listing:
    """The images of a folder or zip, by name."""

    origin: Path
    entries: tuple[Entry, ...]
    is_zip: bool

    def labels(self) -> list[str] | None:
        """The sub-folder of each image, where there are at least two: folders are read as classes."""
        folders = [PurePosixPath(entry.name).parts[:-1] for entry in self.entries]
        first, last = min(folders), max(folders)  # what these two share at the front, all share
        shared = next((at for at, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), len(first))
        labels = [parts[shared] if len(parts) > shared else "" for parts in folders]
        return labels if len(set(labels)) > 1 else None

    def fingerprint(self, *settings: object) -> str:
        """SHA-256 of names, sizes and times, and of the settings given."""
        digest = hashlib.sha256(repr(settings).encode(errors="surrogatepass"))
        for entry in self.entries:
            digest.update(entry.fingerprint())
        return digest.hexdigest()


def list_images(path: Path) -> Listing:
    """The images in a folder, with its sub-folders, or in a zip; hidden files and other kinds are left out."""
    if not path.exists():
        raise DataError(f"no folder or zip {path}: check the path")
    try:
        entries = _in_folder(path) if path.is_dir() else _in_zip(path)
        listing = Listing(path.resolve(), tuple(sorted(entries, key=lambda entry: entry.name)), not path.is_dir())
    except OSError as error:
        raise DataError(f"cannot read {error.filename or path}: {error.strerror or error}") from None
    if not listing.entries:
        raise DataError(f"{path} holds no images ({', '.join(sorted(SUFFIXES))})")
    return listing


def _in_folder(root: Path) -> Iterator[Entry]:
    """Links are followed; ``seen`` keeps a link to an outer folder from leading around in circles."""
    pending, seen = [(str(root), "")], set()
    while pending:
        folder, prefix = pending.pop()
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        with os.scandir(folder) as items:
            for item in items:
                name = prefix + item.name
                if _is_clutter(item.name):
                    continue
                if item.is_dir():
                    pending.append((item.path, f"{name}/"))
                elif _is_image(name) and item.is_file():
                    known = item.stat()
                    yield Entry(name, known.st_size, known.st_mtime_ns)
                elif _is_image(name) and item.is_symlink():
                    yield Entry(name, 0, 0)  # it leads nowhere, and is named with the other bad ones


def _in_zip(path: Path) -> Iterator[Entry]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
        raise DataError(f"{path} is not a zip file, or is damaged: {error}") from None
    images = {_slashed(member.filename): member for member in _trusted(path, members)}  # used twice, the last counts
    _check_overlap(path, images.values())
    for name, member in images.items():
        place = (member.header_offset, member.compress_size, member.file_size, member.CRC, member.compress_type)
        yield Entry(name, member.file_size, member.CRC, place)


def _trusted(path: Path, members: Iterable[zipfile.ZipInfo]) -> Iterator[zipfile.ZipInfo]:
    """The image members; anything that only a trap or a mistake would hold refuses the whole file."""
    for member in members:
        name = member.filename
        if _leads_outside(member.orig_filename) or _leads_outside(name):
            raise _refused(path, name, "a path that leads out of the zip")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise _refused(path, name, "a symbolic link")
        if member.is_dir() or not _is_image(name) or any(map(_is_clutter, _slashed(name).split("/"))):
            continue
        if member.flag_bits & _ENCRYPTED:
            raise _refused(path, name, "encrypted")
        if member.compress_type not in _METHODS:
            raise _refused(path, name, f"compressed with method {member.compress_type}, not stored or deflated")
        if member.file_size > max(_RATIO_FROM_BYTES, _MAX_RATIO * member.compress_size):
            raise _refused(path, name, f"a bomb ({member.compress_size:,} bytes that unpack to {member.file_size:,})")
        if member.file_size > _MAX_MEMBER_BYTES:
            raise _refused(path, name, f"{member.file_size:,} bytes, more than {_MAX_MEMBER_BYTES:,}")
        yield member


def _check_overlap(path: Path, members: Iterable[zipfile.ZipInfo]) -> None:
    end = 0
    for member in sorted(members, key=lambda member: member.header_offset):
        if member.header_offset < end:
            raise _refused(path, member.filename, "a bomb (it shares its bytes with another member)")
        end = member.header_offset + member.compress_size


def _leads_outside(name: str) -> bool:
    parts = _slashed(name).split("/")
    return parts[0] == "" or ".." in parts or name[1:2] == ":" or "\0" in name


def _slashed(name: str) -> str:
    return name.replace("\\", "/")  # some Windows programs write the other stroke


def _is_image(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in SUFFIXES


def _is_clutter(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _refused(path: Path, member: str, problem: str) -> DataError:
    return DataError(f"{path} is refused: its member {one_line(member)} is {problem}; make the zip anew without it")


def one_line(name: str) -> str:
    """A file name as it can be printed: without line ends, control characters or bytes that are no text."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)
