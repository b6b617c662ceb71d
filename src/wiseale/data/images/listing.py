"""List the image files of a folder or zip in a fixed order, and refuse zips that are malicious or damaged.

A zip is never extracted: workers read its members in place.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from wiseale.errors import DataError

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp"})
_MAX_MEMBER_BYTES = 1 << 28  # unpacked size of one image in a zip
_MAX_RATIO, _RATIO_FROM_BYTES = 200, 1 << 24  # members above 16 MB compressed more than 200 times are zip bombs
_ZIP_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_ENCRYPTED = 0x1


class Entry(NamedTuple):
    """One image file: its path in the folder or zip, with ``/``; bytes; modification time in ns, or the CRC in a zip.

    ``place`` is the location in a zip: offset, compressed size, size, CRC, compression method.
    """

    name: str
    size: int
    stamp: int
    place: tuple[int, ...] = ()


@dataclass(frozen=True)
class Listing:
    """The images of a folder or zip, sorted by name."""

    origin: Path
    entries: tuple[Entry, ...]
    is_zip: bool

    def labels(self) -> list[str] | None:
        """The sub-folder of each image as its class, or None if all images are in one folder."""
        folders = [PurePosixPath(entry.name).parts[:-1] for entry in self.entries]
        first, last = min(folders), max(folders)  # a prefix common to these two is common to all
        shared = next((at for at, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), len(first))
        labels = [parts[shared] if len(parts) > shared else "" for parts in folders]
        return labels if len(set(labels)) > 1 else None

    def fingerprint(self, *settings: object) -> str:
        """SHA-256 of the given settings and of every file's name, size and time."""
        digest = hashlib.sha256(repr(settings).encode(errors="surrogatepass"))
        for entry in self.entries:
            digest.update(f"{entry.name}\0{entry.size}\0{entry.stamp}\n".encode(errors="surrogatepass"))
        return digest.hexdigest()


def list_images(path: Path) -> Listing:
    """List the images in a folder and its sub-folders, or in a zip; hidden and other files are left out."""
    if not path.exists():
        raise DataError(f"no folder or zip {path}: check the path")
    try:
        entries = _folder_entries(path) if path.is_dir() else _zip_entries(path)
        listing = Listing(path.resolve(), tuple(sorted(entries, key=lambda entry: entry.name)), not path.is_dir())
    except OSError as error:
        raise DataError(f"cannot read {error.filename or path}: {error.strerror or error}") from None
    if not listing.entries:
        raise DataError(f"{path} holds no images ({', '.join(sorted(SUFFIXES))})")
    return listing


def holds_images(folder: Path) -> bool:
    """Whether there is an image in a folder or its sub-folders; False where it cannot be read."""
    try:
        return any(True for _ in _folder_entries(folder))
    except OSError:
        return False


def _folder_entries(root: Path) -> Iterator[Entry]:
    """List the images of a folder, following links; ``seen`` prevents endless loops through links to outer folders."""
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
                if _is_hidden(item.name):
                    continue
                if item.is_dir():
                    pending.append((item.path, f"{name}/"))
                elif _is_image(name) and item.is_file():
                    yield Entry(name, item.stat().st_size, item.stat().st_mtime_ns)
                elif _is_image(name) and item.is_symlink():
                    yield Entry(name, 0, 0)  # a broken link is reported with the other bad images


def _zip_entries(path: Path) -> Iterator[Entry]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
        raise DataError(f"{path} is not a zip file, or is damaged: {error}") from None
    images = {}  # of duplicate names the last member counts, as in zipfile
    for member in members:
        parts = _parts(member.filename)
        is_used = not member.is_dir() and _is_image(parts[-1]) and not any(map(_is_hidden, parts))
        if problem := _problem(member, is_used):
            raise _refusal(path, member, problem)
        if is_used:
            images["/".join(parts)] = member
    end = 0
    for member in sorted(images.values(), key=lambda member: member.header_offset):
        if member.header_offset < end:
            raise _refusal(path, member, "a bomb (it shares its bytes with another member)")
        end = member.header_offset + member.compress_size
    for name, member in images.items():
        place = (member.header_offset, member.compress_size, member.file_size, member.CRC, member.compress_type)
        yield Entry(name, member.file_size, member.CRC, place)


def _problem(member: zipfile.ZipInfo, is_used: bool) -> str:
    """Why a member is malicious or, if it is used, unreadable, which refuses the whole zip; empty if it is neither."""
    if _escapes_archive(member.orig_filename) or _escapes_archive(member.filename):
        return "a path that leads out of the zip"
    if stat.S_ISLNK(member.external_attr >> 16):
        return "a symbolic link"
    if not is_used:
        return ""
    if member.flag_bits & _ENCRYPTED:
        return "encrypted"
    if member.compress_type not in _ZIP_METHODS:
        return f"compressed with method {member.compress_type}, not stored or deflated"
    if member.file_size > max(_RATIO_FROM_BYTES, _MAX_RATIO * member.compress_size):
        return f"a bomb ({member.compress_size:,} bytes that unpack to {member.file_size:,})"
    if member.file_size > _MAX_MEMBER_BYTES:
        return f"{member.file_size:,} bytes, more than {_MAX_MEMBER_BYTES:,}"
    return ""


def _escapes_archive(name: str) -> bool:
    parts = _parts(name)
    return parts[0] == "" or ".." in parts or name[1:2] == ":" or "\0" in name


def _parts(name: str) -> list[str]:
    return name.replace("\\", "/").split("/")  # some Windows programs write backslashes


def _is_image(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in SUFFIXES


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _refusal(path: Path, member: zipfile.ZipInfo, problem: str) -> DataError:
    name = printable(member.filename)
    return DataError(f"{path} is refused: its member {name} is {problem}; make the zip anew without it")


def printable(name: str) -> str:
    r"""A file name with "?" for every character that cannot be printed.

    >>> printable("a\nb\x1b.png")
    'a?b?.png'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in name)
