"""Rows of a dataset or of users' files, block by block, so that they need not fit in memory."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np

from wiseale.config import parse_spec
from wiseale.data import is_path, load_dataset
from wiseale.data.arrays import (
    ArrayFile,
    Header,
    check_numeric,
    choose_member,
    first_bytes,
    put_channels_first,
    read_header,
    read_npy,
)
from wiseale.data.dataset import Array, Progress, Rows
from wiseale.data.finite import first_flaw
from wiseale.data.source import file_reader, split_path
from wiseale.data.tables.blocks import Block, RawBlock, as_numbers, check_cells
from wiseale.data.tables.columns import Selection, select
from wiseale.data.tables.csv_form import Form
from wiseale.data.tables.mixed import encode_block
from wiseale.data.tables.table import Reader, TableFile
from wiseale.errors import DataError
from wiseale.platform.machine import require_memory
from wiseale.spaces import Space, TableSpace
from wiseale.spaces.columns import Unseen

_BLOCK_BYTES = 1 << 22


@dataclass(frozen=True)
class RowStream:
    """Observations in order.

    Attributes:
        name: used in errors.
        x_shape: shape of one observation.
        n: number of rows; None where it is known only after reading to the end.
        blocks: reads from the start: arrays (rows, *x_shape), float32, float64 or uint8, every value finite.
        columns: names of a table's columns; empty for other files.
    """

    name: str
    x_shape: tuple[int, ...]
    n: int | None
    blocks: Callable[[], Iterator[Array]]
    columns: tuple[str, ...] = ()

    def require(self, x_shape: tuple[int, ...]) -> RowStream:
        """This stream; an error if its rows have another shape."""
        if self.x_shape != x_shape:
            raise DataError(f"{self.name} has rows of shape {self.x_shape}, the model takes {x_shape}")
        return self


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
        if isinstance(reader, ArrayFile):
            return _array_rows(reader, path, array, missing=space is not None and space.missing)
        if isinstance(reader, TableFile):
            if isinstance(space, TableSpace) and space.missing:
                return cell_stream(reader, path, space, unseen or said_unseen(settings)).rows()
            return _table_rows(reader, path, space.names if space else ())
    dataset = load_dataset(spec, data_root, progress, training=False)
    rows = dataset.test if split == "test" else dataset.train
    if rows is None:
        raise DataError(f"{spec} has no test rows: leave out --split")
    return RowStream(spec, dataset.x_shape, len(rows), lambda: _slices(rows))


def _slices(rows: Rows) -> Iterator[Array]:
    size = _rows_at_once(rows.x[:1].nbytes)
    for start in range(0, len(rows), size):
        yield np.asarray(rows.x[start : start + size])


def _rows_at_once(row_bytes: int) -> int:
    return max(1, _BLOCK_BYTES // max(1, row_bytes))


def _table_rows(reader: TableFile, path: Path, columns: tuple[str, ...]) -> RowStream:
    names, read = reader.open(path)
    free = not reader.columns and not reader.drop
    wanted = columns if free else reader.columns
    chosen = select(path.name, names, wanted, reader.drop, reader.labels, line_of=read.line_of)
    found = tuple(chosen.names[i] or str(i + 1) for i in chosen.features)
    if columns and len(found) == len(columns) and found != columns and not free:
        differ = next(i for i, (ours, theirs) in enumerate(zip(columns, found, strict=True)) if ours != theirs)
        raise DataError(
            f'column {differ + 1} chosen from {path.name} is "{found[differ]}", '
            f'the model was trained on "{columns[differ]}" there: choose the same columns in the same order'
        )
    return RowStream(path.name, (len(found),), None, lambda: _table_blocks(chosen, read), found)


def _table_blocks(chosen: Selection, read: Reader) -> Iterator[Array]:
    n = 0
    for block in as_numbers(chosen, read.raw(chosen)):
        check_cells(chosen, block, n)
        n += len(block.values)
        yield block.values
    if n == 0:
        raise DataError(f"{chosen.file} has no rows: at least 1 is needed")


@dataclass(frozen=True)
class CellStream:
    """A table in a file, to be read as the cells of a space.

    Attributes:
        chosen: the space's columns as features, all others as labels.
    """

    chosen: Selection
    read: Reader
    space: TableSpace
    unseen: Unseen

    def blocks(self) -> Iterator[tuple[Block, RawBlock]]:
        """Cells as numbers, and as they are written; the labels are the other columns' text."""
        n = 0
        for raw in self.read.raw(self.chosen):
            block = encode_block(self.space, self.chosen, raw, self.unseen, start=n)
            check_cells(self.chosen, block, n, missing=True)
            n += len(raw)
            yield block, raw
        if n == 0:
            raise DataError(f"{self.chosen.file} has no rows: at least 1 is needed")

    @property
    def form(self) -> Form | None:
        """How the file is written, where it is text."""
        return self.read.form

    def rows(self) -> RowStream:
        """The cells alone."""
        alone = replace(self, chosen=replace(self.chosen, labels=()))
        return RowStream(
            self.chosen.file,
            self.space.x_shape,
            None,
            lambda: (block.values for block, _ in alone.blocks()),
        )


def said_unseen(settings: str) -> Unseen | None:
    """What a file's settings say of levels that training did not see; None where they say nothing."""
    return parse_spec(f":{settings}")[1].get("unseen")  # type: ignore[return-value]


def cell_stream(reader: TableFile, path: Path, space: TableSpace, unseen: Unseen | None = None) -> CellStream:
    """A table's columns by the space's names, wherever they stand."""
    names, read = reader.open(path)
    names_learned = tuple(column.name for column in space.written)
    features = select(path.name, names, names_learned, (), (), line_of=read.line_of)
    others = tuple(i for i in range(len(names)) if i not in features.features)
    return CellStream(replace(features, labels=others), read, space, unseen or space.unseen)


def _array_rows(reader: ArrayFile, path: Path, default: str | None, *, missing: bool = False) -> RowStream:
    stored = _StoredArray.find(path, reader.array, default)
    with stored.opened() as (_, header):
        check_numeric(header.dtype, stored.name)
    like = np.broadcast_to(np.zeros((), header.dtype), header.shape)  # of that shape, but without its memory
    x_shape = put_channels_first(like, stored.name, reader.channels).shape[1:]
    if header.shape[0] == 0 or 0 in x_shape:
        raise DataError(f"{stored.name} has the shape {header.shape}: it is empty")

    def blocks() -> Iterator[Array]:
        row = 0
        for block in stored.blocks():
            x = _usable(put_channels_first(block, stored.name, reader.channels))
            _refuse_flaws(x, stored.name, row, missing=missing)
            row += len(x)
            yield x

    return RowStream(stored.name, x_shape, header.shape[0], blocks)


@dataclass(frozen=True)
class _StoredArray:
    """An array in a .npy file, or the member of an .npz."""

    path: Path
    member: str | None

    @classmethod
    def find(cls, path: Path, asked: str | None, default: str | None) -> _StoredArray:
        if first_bytes(path)[:2] != b"PK":
            if asked is not None:
                raise DataError(f"{path.name} holds a single array: leave out array={asked}")
            read_npy(path)  # refuses files that hold no array
            return cls(path, None)
        with _zip(path) as archive:
            if asked is None and f"{default}.npy" in archive.namelist():
                asked = default
            return cls(path, choose_member(archive, path.name, asked))

    @property
    def name(self) -> str:
        return self.path.name if self.member is None else f"array {self.member} of {self.path.name}"

    @contextmanager
    def opened(self) -> Iterator[tuple[IO[bytes], Header]]:
        """Its bytes after the header, and the header."""
        if self.member is None:
            with self.path.open("rb") as file:
                yield file, read_header(file, self.path.stat().st_size, self.name)
            return
        with _zip(self.path) as archive, archive.open(f"{self.member}.npy") as file:
            yield file, read_header(file, archive.getinfo(f"{self.member}.npy").file_size, self.name)

    def blocks(self) -> Iterator[Array]:
        with self.opened() as (file, header):
            if header.fortran_order:  # a row's values lie apart: a file is mapped, a zipped array read whole
                if self.member:
                    size = header.dtype.itemsize * math.prod(header.shape)
                    require_memory(size, self.name, "save it with numpy.save as a .npy file")
                whole = np.frombuffer(file.read(), header.dtype).reshape(header.shape[::-1]).T if self.member else None
                yield from _slices(Rows(read_npy(self.path) if whole is None else whole))
                return
            row_bytes = header.dtype.itemsize * math.prod(header.shape[1:])
            size, left = _rows_at_once(row_bytes), header.shape[0]
            while left:
                take = min(size, left)
                raw = file.read(take * row_bytes)
                if len(raw) != take * row_bytes:
                    raise DataError(f"{self.name} is cut short: save it again")
                yield np.frombuffer(raw, header.dtype).reshape(take, *header.shape[1:])
                left -= take


@contextmanager
def _zip(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError):
        raise DataError(f"{path.name} is damaged or not an .npz file: save it again with numpy.savez") from None


def _usable(x: Array) -> Array:
    """8-bit images and float32 as they are, every other number as float64."""
    if x.ndim == 4 and x.dtype in (np.uint8, np.bool_):
        return x.view(np.uint8) if x.dtype == np.bool_ else x
    return x.astype(np.float32 if x.dtype in (np.float32, np.float16) else np.float64, copy=False)


def _refuse_flaws(x: Array, what: str, start: int, *, missing: bool = False) -> None:
    if x.dtype == np.uint8:
        return
    if (flaw := first_flaw(x, missing=missing)) is not None:
        where = f"in column {flaw.index[1]}" if x.ndim == 2 else f"at index {list(flaw.index[1:])}"
        raise DataError(
            f"row {start + flaw.index[0]} of {what} has {flaw.problem} {where} (counted from 0): "
            "fill, scale or drop it; wiseale does not guess"
        )
