"""A pack: images stored decoded, at the size networks use, in a folder whose arrays are memory-mapped.

``x.npy``            uint8 (n, C, H, W), an ordinary NumPy file
``factors.npz``      labels or generative factors by name, each (n,)
``manifest.json``    shape, fingerprint of the source, SHA-256 of the other two files, and a checksum of its own

Both files are compared with their checksums when the pack is opened; ``x.npy`` only where size, times, inode and
checksum are not those in ``NAME.verified`` beside the folder: after a write, a copy or a move to another disk.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wiseale.data.dataset import Array
from wiseale.errors import DataError
from wiseale.platform.atomic_files import sha256, write_text
from wiseale.platform.json_files import parse_table, read_text, record, sealed, unseal

IMAGES, FACTORS, MANIFEST, JOURNAL = "x.npy", "factors.npz", "manifest.json", "journal.jsonl"
_VERSION = 1


@dataclass(frozen=True)
class Manifest:
    """``manifest.json``: shape (n, C, H, W), fingerprint of the source data and settings, checksums of the other files.

    ``details`` are further JSON values stored by the code that packed the set.
    """

    shape: tuple[int, ...]
    source: str
    images_sha256: str
    factors_sha256: str
    details: Mapping[str, Any] = field(default_factory=dict)
    version: int = _VERSION

    def write(self, folder: Path) -> None:
        """Write ``manifest.json`` into the folder."""
        text = sealed(asdict(self))
        (folder / MANIFEST).write_text(text, encoding="utf-8", errors="backslashreplace")  # names that are not UTF-8

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read and check the folder's ``manifest.json``."""
        try:
            values = parse_table(read_text(folder / MANIFEST))
            version = values.get("version")
            if isinstance(version, int) and version != _VERSION:
                problem = f"{folder} has packed format {version}, this version reads {_VERSION}"
                raise DataError(f"{problem}: delete it and pack again")
            manifest = record(cls, unseal(values))
        except OSError:
            raise DataError(f"{folder} is not a packed set: it holds no readable {MANIFEST}") from None
        except ValueError as error:
            raise _damaged(folder, MANIFEST, str(error)) from None
        if len(manifest.shape) < 2 or min(manifest.shape) < 1:
            raise _damaged(folder, MANIFEST, f"impossible shape {manifest.shape}")
        return manifest


class Pack(NamedTuple):
    """An opened pack: memory-mapped images, uint8 (n, C, H, W); factors by name, each (n,); and the manifest."""

    x: npt.NDArray[np.uint8]
    factors: dict[str, Array]
    metadata: Manifest


def is_pack(path: Path) -> bool:
    """Whether a folder has the files of a pack, damaged or not."""
    return (path / MANIFEST).is_file() and (path / IMAGES).is_file()


def open_pack(path: Path, *, check: bool = False) -> Pack:
    """Open a packed set; ``check`` compares all files with their checksums now, even if they have not been touched."""
    manifest = Manifest.read(path)
    try:
        x = _open_images(path, manifest, check)
        factors = _read_factors(path, manifest)
    except OSError as error:
        name = Path(error.filename).name if error.filename else IMAGES
        raise _damaged(path, name, error.strerror or "unreadable") from None
    return Pack(x, factors, manifest)


def find_pack(path: Path, source: str) -> Pack | None:
    """The intact pack at ``path`` if it was made from ``source``, else None."""
    try:
        pack = open_pack(path)
    except DataError:
        return None
    return pack if pack.metadata.source == source else None


def npy_header(shape: tuple[int, ...]) -> bytes:
    """The header of ``x.npy``: NumPy leaves room in it, so that n can be lowered after writing.

    >>> len(npy_header((9, 3, 64, 64))) == len(npy_header((200_000, 3, 64, 64))) == 128
    True
    """
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return header.getvalue()


def record_as_verified(folder: Path, checksum: str) -> None:
    """Remember that ``x.npy`` as it is now has this checksum; where that cannot be written, every opening verifies."""
    with suppress(OSError):
        write_text(stamp_path(folder), _stamp(folder, checksum))


def stamp_path(folder: Path) -> Path:
    """The file that says which version of a pack's images was last verified."""
    return folder.with_name(f"{folder.name}.verified")


def _damaged(folder: Path, file: str, problem: str) -> DataError:
    """The error for a pack with a damaged file."""
    return DataError(f"{folder / file} is damaged ({problem}): delete {folder} and pack again")


def _open_images(path: Path, manifest: Manifest, check: bool) -> npt.NDArray[np.uint8]:
    images, header = path / IMAGES, npy_header(manifest.shape)
    size, whole = images.stat().st_size, len(header) + int(np.prod(manifest.shape, dtype=object))
    if size != whole:
        raise _damaged(path, IMAGES, f"{size:,} bytes where {whole:,} belong")
    with images.open("rb") as file:
        if file.read(len(header)) != header:
            raise _damaged(path, IMAGES, "its header disagrees with the manifest")
    if check or not _is_verified(path, manifest.images_sha256):
        if sha256(images) != manifest.images_sha256:
            raise _damaged(path, IMAGES, "its checksum does not match")
        record_as_verified(path, manifest.images_sha256)
    return np.memmap(images, np.uint8, mode="r", offset=len(header), shape=manifest.shape)


def _read_factors(path: Path, manifest: Manifest) -> dict[str, Array]:
    if sha256(path / FACTORS) != manifest.factors_sha256:
        raise _damaged(path, FACTORS, "its checksum does not match")
    try:
        with np.load(path / FACTORS, allow_pickle=False) as stored:
            factors = dict(stored)
    except (ValueError, zipfile.BadZipFile):
        raise _damaged(path, FACTORS, "not arrays") from None
    if any(values.shape != manifest.shape[:1] for values in factors.values()):
        raise _damaged(path, FACTORS, f"not one value for each of {manifest.shape[0]:,} rows")
    return factors


def _is_verified(folder: Path, checksum: str) -> bool:
    with suppress(OSError, ValueError):
        return read_text(stamp_path(folder)) == _stamp(folder, checksum)
    return False


def _stamp(folder: Path, checksum: str) -> str:
    """What changes when the images are written, copied or replaced, and their checksum."""
    status = (folder / IMAGES).stat()
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino} {checksum}\n"
