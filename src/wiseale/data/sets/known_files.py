"""The files of a dataset: where they are stored, where they are downloaded from, and their checksums."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wiseale.errors import DataError


@dataclass(frozen=True)
class KnownFile:
    """One file of a dataset: its name, and the size and SHA-256 of its decompressed content."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class KnownFiles:
    """The files of a dataset. A dataset class that declares ``files: ClassVar[KnownFiles]`` can be fetched.

    Attributes:
        name: of the dataset, as registered.
        title: of the dataset, as people write it.
        folders: where the files may be under the data root; they are fetched into the first.
        mirrors: base addresses; ``mirror + file.name + remote_suffix`` is downloaded.
        files: in the order the dataset reads them.
        licence: of the data.
        remote_suffix: what the mirrors append to a file's name; the content may be gzip-compressed or not.
    """

    name: str
    title: str
    folders: tuple[str, ...]
    mirrors: tuple[str, ...]
    files: tuple[KnownFile, ...]
    licence: str
    remote_suffix: str = ".gz"


def find_file(known: KnownFiles, file: KnownFile, data_root: Path) -> Path:
    """The path of one file under the data root, ``.gz`` or not; where it is missing, an error says how to fetch it."""
    for folder in known.folders:
        for name in (file.name, f"{file.name}.gz"):
            if (path := data_root / folder / name).is_file():
                return path
    command = f"wiseale data fetch {known.name}"
    raise DataError(
        f"no {known.title} in {data_root / known.folders[0]} ({file.name} is missing): "
        f"run `{command}`, or `{command} --from DIR` if you have its files"
    )
