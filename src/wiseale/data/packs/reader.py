"""Read a pack, a folder with memory-mapped images: nothing is decoded, and pixels are only read to be checked.

A pack of one file (version 1):

``x.npy``                    uint8 (n, C, H, W), an ordinary NumPy file
``factors.npz``              labels or generative factors by name, each (n,)
``manifest.json``            version, shape, fingerprint of the source, SHA-256 of the other two files

A larger pack, of shards (version 2):

``shards/00000.u8``          the rows of the first shard, uint8, one after another; a shard holds about 4 GiB
``shards/00000.crc32``       CRC-32 of each block of its rows
``factors/0.npy``            a factor of all rows
``manifest.json``            version, shape, source, rows and SHA-256 of every file, names of the factors

``NAME.verified`` beside the folder tells which files were found right and have not been touched since
(:mod:`~wiseale.data.packs.stamps`). Of the others ``x.npy`` and the factors are compared with their checksums when the
pack is opened, the blocks of a shard when one of their rows is first read (:mod:`~wiseale.data.packs.block_checks`).
"""

from __future__ import annotations

import math
import os
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wiseale.data.dataset import Array
from wiseale.data.packs.block_checks import BlockChecks, CheckedMapping
from wiseale.data.packs.layout import IMAGES, SHARDS, RowFile
from wiseale.data.packs.manifest import MANIFEST, Manifest, Sharding, damaged
from wiseale.data.packs.stamps import Stamp, last_verified, record_as_verified
from wiseale.errors import DataError
from wiseale.platform.atomic_files import sha256
from wiseale.platform.mapped_files import can_join, join_files

FACTORS, FACTORS_FOLDER = "factors.npz", "factors"


class Pack(NamedTuple):
    """An opened pack: memory-mapped images, uint8 (n, C, H, W); factors by name, each (n,); and the manifest."""

    x: npt.NDArray[np.uint8]
    factors: dict[str, Array]
    metadata: Manifest


def is_pack(path: Path) -> bool:
    """Whether a folder has the files of a pack, damaged or not."""
    return (path / MANIFEST).is_file() and ((path / IMAGES).is_file() or (path / SHARDS).is_dir())


def open_pack(path: Path, *, check: bool = False) -> Pack:
    """Open a packed set; ``check`` compares all files with their checksums now, even if they have not been touched."""
    manifest = Manifest.read(path)
    try:
        if manifest.sharding is None:
            return _open_file(path, manifest, check)
        return _open_shards(path, manifest, manifest.sharding, check)
    except OSError as error:
        name = Path(error.filename).relative_to(path) if error.filename else manifest.layout.files()[0].name
        raise damaged(path, str(name), error.strerror or "unreadable") from None


def find_pack(path: Path, source: str) -> Pack | None:
    """The intact pack at ``path`` if it was made from ``source``, else None."""
    try:
        pack = open_pack(path)
    except DataError:
        return None
    return pack if pack.metadata.source == source else None


def factor_name(number: int) -> str:
    """The file of a factor in a sharded pack."""
    return f"{FACTORS_FOLDER}/{number}.npy"


def _open_file(path: Path, manifest: Manifest, check: bool) -> Pack:
    images, header = path / IMAGES, manifest.layout.header
    status = _checked_size(path, manifest.layout.files()[0])
    with images.open("rb") as file:
        if file.read(len(header)) != header:
            raise damaged(path, IMAGES, "its header disagrees with the manifest")
    if check or last_verified(path).get(IMAGES) != Stamp.of(status, manifest.sha256):
        if sha256(images) != manifest.sha256:
            raise damaged(path, IMAGES, "its checksum does not match")
        record_as_verified(path, {IMAGES: Stamp.of(status, manifest.sha256)})
    if sha256(path / FACTORS) != manifest.factors_sha256:
        raise damaged(path, FACTORS, "its checksum does not match")
    try:
        with np.load(path / FACTORS, allow_pickle=False) as stored:
            factors = {name: stored[name] for name in stored.files}
    except (ValueError, zipfile.BadZipFile):
        raise damaged(path, FACTORS, "not arrays") from None
    x = np.memmap(images, np.uint8, mode="r", offset=len(header), shape=manifest.shape)
    return Pack(x, factors, manifest)


def _open_shards(path: Path, manifest: Manifest, sharding: Sharding, check: bool) -> Pack:
    if not can_join():
        raise DataError(f"{path} is packed in several files, which this system cannot map as one: pack it here again")
    known = last_verified(path)
    files = manifest.layout.files()
    now = {
        file.name: Stamp.of(_checked_size(path, file), shard.sha256)
        for file, shard in zip(files, sharding.shards, strict=True)
    }
    of_factors = {factor_name(number): of for number, of in enumerate(sharding.factors.values())}
    now |= {name: Stamp.of((path / name).stat(), of) for name, of in of_factors.items()}
    for name in now if check else of_factors:
        if check or known.get(name) != now[name]:
            if sha256(path / name) != now[name].sha256:
                raise damaged(path, name, "its checksum does not match")
            known[name] = now[name]
    right = {name: stamp for name, stamp in now.items() if known.get(name) == stamp}
    if right != last_verified(path):
        record_as_verified(path, right)
    mapping = join_files([path / file.name for file in files], [file.bytes for file in files], CheckedMapping)
    assert isinstance(mapping, CheckedMapping)
    checks = BlockChecks(path, manifest, right)
    mapping.checks = None if checks.finished else checks
    x = np.frombuffer(mapping, np.uint8, math.prod(manifest.shape)).reshape(manifest.shape)
    return Pack(x, _mapped_factors(path, sharding, len(x)), manifest)


def _mapped_factors(path: Path, sharding: Sharding, n: int) -> dict[str, Array]:
    factors: dict[str, Array] = {}
    for number, name in enumerate(sharding.factors):
        try:
            factors[name] = np.load(path / factor_name(number), mmap_mode="r", allow_pickle=False)
        except ValueError:
            raise damaged(path, factor_name(number), "not an array") from None
        if factors[name].shape != (n,):
            raise damaged(path, factor_name(number), f"not one value for each of {n:,} rows")
    return factors


def _checked_size(path: Path, file: RowFile) -> os.stat_result:
    status = (path / file.name).stat()
    if status.st_size != file.bytes:
        raise damaged(path, file.name, f"{status.st_size:,} bytes where {file.bytes:,} belong")
    return status
