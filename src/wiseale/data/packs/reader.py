"""The packed format, read: a folder whose images are memory-mapped, so that opening costs nothing and nothing decodes.

``x.npy``          uint8 (n, C, H, W), an ordinary NumPy file
``factors.npz``    what is known of each row, by name, each (n,)
``manifest.json``  version, shape, where it came from, SHA-256 of the other two
"""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wiseale.data.dataset import Array
from wiseale.errors import DataError

VERSION = 1
IMAGES, FACTORS, MANIFEST = "x.npy", "factors.npz", "manifest.json"
_HEADER_BYTES = 128
_READ_BYTES = 1 << 22


@dataclass(frozen=True)
class Manifest:
    """What a pack says of itself.

    Attributes:
        shape: (n, C, H, W).
        source: fingerprint of what it was made from; a pack made from anything else is made again.
        sha256: of ``x.npy``.
        factors_sha256: of ``factors.npz``.
        details: whatever its maker wants to find again, as JSON.
    """

    shape: tuple[int, ...]
    source: str
    sha256: str
    factors_sha256: str
    details: Mapping[str, Any] = field(default_factory=dict)
    dtype: str = "|u1"
    version: int = VERSION

    def write(self, folder: Path) -> None:
        """Put it into the folder."""
        values = {"version": self.version, "count": self.shape[0], **asdict(self)}
        (folder / MANIFEST).write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The folder's manifest, checked."""
        try:
            values = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
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
    """An opened pack: images (n, C, H, W) uint8 read from disk as they are used, factors by name, and the manifest."""

    x: npt.NDArray[np.uint8]
    factors: dict[str, Array]
    metadata: Manifest


def open_pack(path: Path, *, check: bool = False) -> Pack:
    """Open a packed set; ``check`` also compares the images, all of them, with their checksum."""
    manifest = Manifest.read(path)
    images, header = path / IMAGES, npy_header(manifest.shape)
    expected = len(header) + math.prod(manifest.shape)
    try:
        if (size := images.stat().st_size) != expected:
            raise damaged(path, IMAGES, f"{size:,} bytes where {expected:,} belong")
        with images.open("rb") as file:
            if file.read(len(header)) != header:
                raise damaged(path, IMAGES, "its header disagrees with the manifest")
        if check and sha256(images) != manifest.sha256:
            raise damaged(path, IMAGES, "its checksum does not match")
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


def find_pack(path: Path, source: str) -> Pack | None:
    """The sound pack at ``path`` made from ``source``, or None where it has to be made."""
    try:
        pack = open_pack(path)
    except DataError:
        return None
    return pack if pack.metadata.source == source else None


def damaged(folder: Path, file: str, problem: str) -> DataError:
    """The error for a pack that cannot be trusted."""
    return DataError(f"{folder / file} is damaged ({problem}): delete {folder} and pack again")


def npy_header(shape: tuple[int, ...]) -> bytes:
    """The 128 bytes before the images, NumPy's format 1.0; the same length for any n, so that n may still shrink."""
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    room = _HEADER_BYTES - 10
    return b"\x93NUMPY\x01\x00" + room.to_bytes(2, "little") + text.ljust(room - 1) + b"\n"


def sha256(path: Path) -> str:
    """SHA-256 of a file, read a little at a time."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()
