"""Read a pack, a folder with memory-mapped images: nothing is decoded, and pixels are only read to be checked.

``x.npy``          uint8 (n, C, H, W), an ordinary NumPy file
``factors.npz``    labels or generative factors by name, each (n,)
``manifest.json``  version, shape, fingerprint of the source, SHA-256 of the other two files

Beside the folder, ``NAME.verified`` holds size, times and inode of ``x.npy`` when its checksum was last found right.
The images are read and compared with their checksum whenever it is not that of the file as it is: after any write to
it, a copy or a move to another disk. Otherwise opening reads no pixels.
"""

from __future__ import annotations

import json
import math
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
from wiseale.platform.json_files import parse_json, read_text, record, to_json

VERSION = 1
IMAGES, FACTORS, MANIFEST = "x.npy", "factors.npz", "manifest.json"
_HEADER_BYTES = 128


@dataclass(frozen=True)
class Manifest:
    """The content of ``manifest.json``.

    Attributes:
        shape: (n, C, H, W).
        source: fingerprint of the source data and settings; the pack is rebuilt when it differs.
        sha256: SHA-256 of ``x.npy``.
        factors_sha256: SHA-256 of ``factors.npz``.
        details: further JSON values stored by the code that packed the set.
    """

    shape: tuple[int, ...]
    source: str
    sha256: str
    factors_sha256: str
    details: Mapping[str, Any] = field(default_factory=dict)
    dtype: str = "|u1"
    version: int = VERSION

    def write(self, folder: Path) -> None:
        """Write ``manifest.json`` into the folder."""
        values = {"version": self.version, "count": self.shape[0], **asdict(self)}
        (folder / MANIFEST).write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read and check the folder's ``manifest.json``."""
        try:
            values = parse_json(read_text(folder / MANIFEST))
        except OSError:
            raise DataError(f"{folder} is not a packed set: it holds no readable {MANIFEST}") from None
        except ValueError:
            raise damaged(folder, MANIFEST, "not JSON") from None
        if not isinstance(values, dict) or not isinstance(values.get("version"), int):
            raise damaged(folder, MANIFEST, "not a manifest")
        if values["version"] != VERSION:
            problem = f"{folder} has packed format {values['version']}, this version reads {VERSION}"
            raise DataError(f"{problem}: delete it and pack again")
        try:
            shape = tuple(int(length) for length in values["shape"])
            source, of_images, of_factors = (str(values[key]) for key in ("source", "sha256", "factors_sha256"))
            manifest = cls(shape, source, of_images, of_factors, dict(values["details"]), str(values["dtype"]))
        except (KeyError, TypeError, ValueError):
            raise damaged(folder, MANIFEST, "incomplete") from None
        if len(shape) < 2 or min(shape) < 1 or manifest.dtype != "|u1":
            raise damaged(folder, MANIFEST, f"impossible shape {shape} or dtype {manifest.dtype}")
        return manifest


class Pack(NamedTuple):
    """An opened pack: memory-mapped images, uint8 (n, C, H, W); factors by name, each (n,); and the manifest."""

    x: npt.NDArray[np.uint8]
    factors: dict[str, Array]
    metadata: Manifest


def open_pack(path: Path, *, check: bool = False) -> Pack:
    """Open a packed set; ``check`` compares the images with their checksum even if the file has not been touched."""
    manifest = Manifest.read(path)
    images, header = path / IMAGES, npy_header(manifest.shape)
    expected = len(header) + math.prod(manifest.shape)
    try:
        if (size := images.stat().st_size) != expected:
            raise damaged(path, IMAGES, f"{size:,} bytes where {expected:,} belong")
        with images.open("rb") as file:
            if file.read(len(header)) != header:
                raise damaged(path, IMAGES, "its header disagrees with the manifest")
        if check or _last_verified(path) != Stamp.of(images, manifest.sha256):
            if sha256(images) != manifest.sha256:
                raise damaged(path, IMAGES, "its checksum does not match")
            record_as_verified(path, manifest.sha256)
        if sha256(path / FACTORS) != manifest.factors_sha256:
            raise damaged(path, FACTORS, "its checksum does not match")
        with np.load(path / FACTORS, allow_pickle=False) as stored:
            factors = {name: stored[name] for name in stored.files}
    except OSError as error:
        raise damaged(path, Path(error.filename or IMAGES).name, error.strerror or "unreadable") from None
    except (ValueError, zipfile.BadZipFile):
        raise damaged(path, FACTORS, "not arrays") from None
    x = np.memmap(images, np.uint8, mode="r", offset=len(header), shape=manifest.shape)
    return Pack(x, factors, manifest)


@dataclass(frozen=True)
class Stamp:
    """What changes when a file is written, copied or replaced, and the checksum it had then."""

    size: int
    modified_ns: int
    changed_ns: int
    inode: int
    sha256: str

    @classmethod
    def of(cls, path: Path, sha256: str) -> Stamp:
        """The stamp of a file now."""
        status = path.stat()
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, sha256)


def record_as_verified(folder: Path, of_images: str) -> None:
    """Keep the stamp of images whose checksum is right; where it cannot be written, every opening checks them."""
    with suppress(OSError):
        write_text(stamp_path(folder), to_json(asdict(Stamp.of(folder / IMAGES, of_images))))


def stamp_path(folder: Path) -> Path:
    """The file with the stamp of a pack's images."""
    return folder.with_name(f"{folder.name}.verified")


def _last_verified(folder: Path) -> Stamp | None:
    try:
        return record(Stamp, parse_json(read_text(stamp_path(folder))))
    except (OSError, ValueError):
        return None


def find_pack(path: Path, source: str) -> Pack | None:
    """The intact pack at ``path`` if it was made from ``source``, else None."""
    try:
        pack = open_pack(path)
    except DataError:
        return None
    return pack if pack.metadata.source == source else None


def damaged(folder: Path, file: str, problem: str) -> DataError:
    """The error for a pack with a damaged file."""
    return DataError(f"{folder / file} is damaged ({problem}): delete {folder} and pack again")


def npy_header(shape: tuple[int, ...]) -> bytes:
    """The header of ``x.npy`` (NumPy format 1.0), padded to 128 bytes so that n can be lowered after writing.

    >>> len(npy_header((9, 3, 64, 64))) == len(npy_header((200_000, 3, 64, 64))) == 128
    True
    """
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text_bytes = _HEADER_BYTES - 10  # 8 bytes of magic and version, 2 of length
    return b"\x93NUMPY\x01\x00" + text_bytes.to_bytes(2, "little") + text.ljust(text_bytes - 1) + b"\n"
