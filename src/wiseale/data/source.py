"""Users' own files, read according to their type: a path, optionally followed by a colon and settings."""

from __future__ import annotations

import importlib
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from wiseale.config import SettingError, Settings, from_values, parse_spec
from wiseale.data.dataset import Dataset, Progress
from wiseale.data.images.folder import load_images, load_packed
from wiseale.data.images.pack import is_pack
from wiseale.data.tables.table import TableFile
from wiseale.errors import ConfigError, DataError

READERS = {
    ".npy": "wiseale.data.arrays:ArrayFile",
    ".npz": "wiseale.data.arrays:ArrayFile",
    ".csv": "wiseale.data.tables.csv_table:CsvFile",
    ".tsv": "wiseale.data.tables.csv_table:CsvFile",
    ".parquet": "wiseale.data.tables.arrow_files:ParquetFile",
    ".feather": "wiseale.data.tables.arrow_files:ArrowFile",
    ".arrow": "wiseale.data.tables.arrow_files:ArrowFile",
}
"""Where each type of file is read: a class of settings with the method :meth:`FileReader.load`."""

_FORM = (
    "separator",
    "header",
    "decimal",
    "channels",
)  # how a file is written, not what is wanted of it
_SETTINGS = re.compile(r":(?=[A-Za-z][\w-]*=)")  # a colon that may begin settings


class FileReader(Protocol):
    """Settings for reading one type of file."""

    def load(self, path: Path, name: str, *, training: bool = True) -> Dataset:
        """Read the file; ``training=False`` accepts what is too little to train on, such as a single row."""
        ...


def load_path(
    spec: str, *, training: bool = True, progress: Progress | None = None, columns: tuple[str, ...] = ()
) -> Dataset:
    """The dataset in a file or folder: ``"sales.csv"``, ``"sales.csv:columns=price,qty,labels=region"``.

    Its name is the absolute path with the settings given, so that it can be loaded again from anywhere. ``columns`` are
    the features of a table whose settings choose none.
    """
    path, settings = split_path(spec)
    if not path.exists():
        raise DataError(f"no file {path}: check the path")
    if is_pack(path):
        return load_packed(path, parse_spec(f":{settings}")[1], training=training)
    if path.is_dir() or path.suffix.lower() == ".zip":
        return load_images(path, parse_spec(f":{settings}")[1], progress, training=training)
    source = file_reader(path, settings)
    if columns and isinstance(source, TableFile) and not (source.columns or source.drop or source.kinds):
        source = replace(source, columns=columns)
    return source.load(path, f"{path}:{settings}" if settings else str(path), training=training)


def read_alike(spec: str, before: str) -> str:
    """The spec with how another file of its type was read (``decimal=comma``), where it does not say otherwise.

    Args:
        spec: a data argument.
        before: the data argument that a model was trained on; empty where that is not known.
    """
    path, settings = split_path(spec)
    known_path, known = split_path(before)
    if path.suffix.lower() != known_path.suffix.lower() or path.suffix.lower() not in READERS:
        return spec
    own = parse_spec(f":{settings}")[1]
    kept = {name: value for name, value in parse_spec(f":{known}")[1].items() if name in _FORM and name not in own}
    added = ",".join(f"{name}={value}" for name, value in kept.items())
    return f"{spec}{',' if settings else ':'}{added}" if added else spec


def file_reader(path: Path, settings: str) -> FileReader:
    """The reader for this type of file, with the settings given."""
    reader = READERS.get(path.suffix.lower())
    if reader is None or not path.is_file():
        raise DataError(
            f"cannot read {path}: wiseale reads {', '.join(READERS)}, folders and .zip of images, packed sets"
        )
    module, _, attribute = reader.partition(":")
    return _build(getattr(importlib.import_module(module), attribute), path, settings)


def split_path(spec: str) -> tuple[Path, str]:
    """The absolute path and the settings of ``path:key=value,…``; if the path holds colons, the longest that exists."""
    if os.path.exists(os.path.expanduser(spec)):
        return _absolute(spec), ""
    colons = [match.start() for match in _SETTINGS.finditer(spec)]
    for colon in reversed(colons):
        if os.path.exists(os.path.expanduser(spec[:colon])):
            return _absolute(spec[:colon]), spec[colon + 1 :]
    if colons:
        return _absolute(spec[: colons[0]]), spec[colons[0] + 1 :]
    return _absolute(spec), ""


def _absolute(path: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(path)))


def _build(cls: type[Settings], path: Path, settings: str) -> FileReader:
    try:
        reader: FileReader = from_values(cls, parse_spec(f":{settings}")[1])  # type: ignore[assignment]
    except SettingError as error:
        raise ConfigError(f"{path}: {error}") from None
    return reader
