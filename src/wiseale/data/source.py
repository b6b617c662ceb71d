"""People's own data: files read according to their type, whole or row by row, and what a word on a command line means.

A data argument is a path, optionally followed by a colon and settings (``sales.csv:labels=region``), or a dataset.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from wiseale import registry
from wiseale.config import SettingError, from_values, parse_spec
from wiseale.data import is_path, load_dataset
from wiseale.data.dataset import STREAMED, Array, Dataset, Progress, RowStream, row_blocks
from wiseale.data.images.folder import load_images, load_packed
from wiseale.data.images.listing import holds_images
from wiseale.data.images.pack import is_pack
from wiseale.data.tables.table import TableFile
from wiseale.errors import ConfigError, DataError
from wiseale.spaces import Space
from wiseale.spaces.columns import Unseen

READERS = {
    ".npy": "wiseale.data.arrays:ArrayFile",
    ".npz": "wiseale.data.arrays:ArrayFile",
    ".csv": "wiseale.data.tables.csv_table:CsvFile",
    ".tsv": "wiseale.data.tables.csv_table:CsvFile",
    ".parquet": "wiseale.data.tables.table:ParquetFile",
    ".feather": "wiseale.data.tables.table:ArrowFile",
    ".arrow": "wiseale.data.tables.table:ArrowFile",
}
"""Where each type of file is read: a :class:`FileReader`."""

_FORM = ("separator", "header", "decimal", "channels")  # how a file is written, not what is wanted of it
_SETTINGS = re.compile(r":(?=[A-Za-z][\w-]*=)")  # a colon that may begin settings

_WRITTEN_BY_US = ("config.json", "comparison.json", "reproduction.json")  # runs and models, `compare`, `reproduce`


class FileReader(Protocol):
    """Settings for reading one type of file."""

    def load(self, path: Path, name: str, *, training: bool = True) -> Dataset:
        """Read the file; ``training=False`` accepts what is too little to train on, such as a single row."""
        ...

    def rows(
        self, path: Path, space: Space | None, *, array: str | None = None, unseen: Unseen | None = None
    ) -> RowStream:
        """The rows in blocks, see :func:`open_rows`."""
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
    values = parse_spec(f":{settings}")[1]
    if is_pack(path):
        return load_packed(path, values, training=training)
    if path.is_dir() or path.suffix.lower() == ".zip":
        return load_images(path, values, progress, training=training)
    reader = file_reader(path, settings)
    if columns and isinstance(reader, TableFile) and not (reader.columns or reader.drop or reader.kinds):
        reader = replace(reader, columns=columns)
    return reader.load(path, f"{path}:{settings}" if settings else str(path), training=training)


def open_rows(
    spec: str,
    *,
    space: Space | None = None,
    array: str | None = None,
    split: str = "train",
    data_root: Path | None = None,
    progress: Progress | None = None,
    unseen: Unseen | None = None,
) -> RowStream:
    """Rows of a dataset's split, or of a path with settings.

    ``space`` is that of a model to read for: a table must have its columns, which are taken from among the file's,
    unless its settings choose others, which is refused; where cells may be missing, they are read with its kinds and
    levels, and ``unseen`` replaces its own. ``array`` is the one taken from an .npz that holds several.
    """
    path, settings = split_path(spec)
    if is_path(spec) and path.exists() and not path.is_dir() and path.suffix.lower() != ".zip":
        reader = file_reader(path, settings)
        return reader.rows(path, space, array=array, unseen=unseen or said_unseen(settings))
    dataset = load_dataset(spec, data_root, progress, training=False)
    rows = dataset.test if split == "test" else dataset.train
    if rows is None:
        raise DataError(f"{spec} has no test rows: leave out --split")

    def blocks() -> Iterator[Array]:
        return (rows.x[part] for part in row_blocks(rows.x, STREAMED))

    return RowStream(spec, dataset.x_shape, len(rows), blocks)


def said_unseen(settings: str) -> Unseen | None:
    """What a file's settings say of levels that training did not see; None where they say nothing."""
    return parse_spec(f":{settings}")[1].get("unseen")  # type: ignore[return-value]


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
    try:
        settings_class = getattr(importlib.import_module(module), attribute)
        return from_values(settings_class, parse_spec(f":{settings}")[1])  # type: ignore[no-any-return]
    except SettingError as error:
        raise ConfigError(f"{path}: {error}") from None


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


@dataclass(frozen=True)
class Named:
    """The data that a word on the command line stands for.

    Attributes:
        spec: a dataset or a path, as :func:`~wiseale.data.load_dataset` takes it.
        note: one line to show where the word could also stand for something else.
    """

    spec: str
    note: str | None = None


def named_data(word: str) -> Named:
    """The data that somebody means who types this word.

    A bare name of a dataset means a folder of that name only where the folder can be read as data: it holds images,
    and it is not a directory of results, whose figures are images too. With settings (``sine:n=500``) or a colon alone
    (``sine:``) it is always the dataset; with a path separator (``./sine``) always the folder.
    """
    folder = Path(word)
    if word not in registry.DATASETS or not folder.is_dir():
        return Named(word)
    if any((folder / name).exists() for name in _WRITTEN_BY_US) or not holds_images(folder):
        return Named(word)
    note = f"{word} is read as the folder of images here: write `{word}:` for the dataset, ./{word} for the folder"
    return Named(str(folder.absolute()), note)
