"""``manifest.json`` of a pack: version 1 describes one file of rows, version 2 shards."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wiseale.data.packs.layout import Layout
from wiseale.errors import DataError
from wiseale.platform.json_files import parse_json, read_text, record

MANIFEST = "manifest.json"
ONE_FILE, SHARDED = 1, 2


@dataclass(frozen=True)
class Shard:
    """One file of rows.

    Attributes:
        rows: how many it holds.
        sha256: SHA-256 of the file.
        blocks_sha256: SHA-256 of the file with the checksums of its blocks.
    """

    rows: int
    sha256: str
    blocks_sha256: str


@dataclass(frozen=True)
class Sharding:
    """What the manifest of a sharded pack adds.

    Attributes:
        shard_rows: rows in each shard but the last.
        block_rows: rows in each block that has a checksum, but the last.
        shards: in the order of their rows.
        factors: SHA-256 of each factor's file by the factor's name, in the order of the files.
    """

    shard_rows: int
    block_rows: int
    shards: tuple[Shard, ...]
    factors: Mapping[str, str]


@dataclass(frozen=True)
class Manifest:
    """The content of ``manifest.json``.

    Attributes:
        shape: (n, C, H, W).
        source: fingerprint of the source data and settings; the pack is rebuilt when it differs.
        sha256: fingerprint of the images: SHA-256 of ``x.npy``, or of the shape and the shards' SHA-256.
        factors_sha256: SHA-256 of ``factors.npz``; empty in a sharded pack.
        details: further JSON values stored by the code that packed the set.
        sharding: the shards; None where ``x.npy`` holds all rows.
    """

    shape: tuple[int, ...]
    source: str
    sha256: str
    factors_sha256: str
    details: Mapping[str, Any] = field(default_factory=dict)
    dtype: str = "|u1"
    version: int = ONE_FILE
    sharding: Sharding | None = None

    @property
    def layout(self) -> Layout:
        """Where the rows lie, in blocks that have checksums."""
        n, *shape = self.shape
        if self.sharding is None:
            return Layout(n, tuple(shape), 1)
        return Layout(n, tuple(shape), self.sharding.block_rows, self.sharding.shard_rows)

    def write(self, folder: Path) -> None:
        """Write ``manifest.json`` into the folder."""
        own = asdict(self)
        of_shards = own.pop("sharding") or {}
        values = {"version": self.version, "count": self.shape[0], **own, **of_shards}
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
        if (version := values["version"]) not in (ONE_FILE, SHARDED):
            problem = f"{folder} has packed format {version}, this version reads {ONE_FILE} and {SHARDED}"
            raise DataError(f"{problem}: delete it and pack again")
        try:
            shape = tuple(int(length) for length in values["shape"])
            source, of_images, of_factors = (str(values[key]) for key in ("source", "sha256", "factors_sha256"))
            keys = ("shard_rows", "block_rows", "shards", "factors")
            sharding = record(Sharding, {key: values[key] for key in keys}) if version == SHARDED else None
            details, dtype = dict(values["details"]), str(values["dtype"])
        except (KeyError, TypeError, ValueError):
            raise damaged(folder, MANIFEST, "incomplete") from None
        manifest = cls(shape, source, of_images, of_factors, details, dtype, version, sharding)
        if len(shape) < 2 or min(shape) < 1 or manifest.dtype != "|u1":
            raise damaged(folder, MANIFEST, f"impossible shape {shape} or dtype {manifest.dtype}")
        if sharding is not None and not _agrees(manifest, sharding):
            raise damaged(folder, MANIFEST, "its shards disagree with its shape or its checksum")
        return manifest


def shards_fingerprint(shape: Sequence[int], shards: Sequence[Shard]) -> str:
    """The fingerprint of a sharded pack's images, without reading any of them."""
    text = json.dumps(["|u1", list(shape), [(shard.rows, shard.sha256) for shard in shards]])
    return hashlib.sha256(text.encode()).hexdigest()


def damaged(folder: Path, file: str, problem: str) -> DataError:
    """The error for a pack with a damaged file."""
    return DataError(f"{folder / file} is damaged ({problem}): delete {folder} and pack again")


def _agrees(manifest: Manifest, sharding: Sharding) -> bool:
    whole = min(sharding.block_rows, sharding.shard_rows) >= 1 and sharding.shard_rows % sharding.block_rows == 0
    if not whole or -(-manifest.shape[0] // sharding.shard_rows) != len(sharding.shards):
        return False
    expected = [file.stop - file.start for file in manifest.layout.files()]
    fingerprint = shards_fingerprint(manifest.shape, sharding.shards)
    return [shard.rows for shard in sharding.shards] == expected and fingerprint == manifest.sha256
