"""Users' arrays: a memory-mapped ``.npy`` file, or one array of an ``.npz``; every value is checked before training."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from wiseale.config import Settings, setting
from wiseale.data.dataset import STREAMED, Array, Dataset, RowStream, first_flaw, row_blocks
from wiseale.data.defaults import make_dataset
from wiseale.data.tables.frames import has_missing, learn_matrix
from wiseale.errors import DataError
from wiseale.platform.machine import require_memory
from wiseale.registry import did_you_mean
from wiseale.spaces import MixedSpace, Space

Channels = Literal["auto", "first", "last", "none"]

_SHAPES = "(n, features), (n, channels, length) or (n, channels, height, width)"


class ChannelsError(DataError):
    """Images, the array ``what``, whose last axis looks like that of the channels, which the user has to say."""

    def __init__(self, what: str, shape: tuple[int, ...]) -> None:
        super().__init__(what, shape)
        self.what = what
        self._problem = f"{what} has the shape {shape}, which looks like (n, height, width, channels)"

    def __str__(self) -> str:
        file = self.what.rpartition(" of ")[2] if self.what.startswith("array ") else self.what
        return f"{self._problem}: write {file}:channels=last, or {file}:channels=first if it is not"

    def in_python(self) -> str:
        """The error for a reader who holds the array and not a file."""
        swap = f"{self.what}.transpose(0, 1, 3, 2)"
        return f"{self._problem}: give {self.what}.transpose(0, 3, 1, 2), or {swap} if its channels are first already"


@dataclass(frozen=True)
class ArrayFile(Settings):
    """One array of numbers: (n, features), (n, channels, length) or (n, channels, height, width)."""

    array: str | None = setting(None, "which array of an .npz")
    labels: tuple[str, ...] = setting((), "1-D arrays of the .npz, or .npy files beside it, to colour plots by")
    channels: Literal["auto", "first", "last", "none"] = setting(
        "auto", "the channels' axis: first (after the rows), last, or none"
    )
    missing: Literal["learn", "error"] = setting("learn", "NaN in a table is a missing cell; error refuses it")
    standardize: Literal["auto", "none", "columns", "global"] = setting("auto", "by which mean and scale")

    def load(self, path: Path, name: str, *, training: bool = True) -> Dataset:
        """Read the file; ``training=False`` accepts a single row."""
        stored = _StoredArray.find(path, self.array)
        if stored.member is None:
            labels = {Path(file).stem: _StoredArray(path.parent / file) for file in self.labels}
        else:
            labels = {label: _StoredArray.find(path, label) for label in self.labels}
        array, factors = stored.read(), {key: np.array(label.read()) for key, label in labels.items()}
        what = stored.name if self.array else path.name
        minimum_rows = 2 if training else 1
        space: MixedSpace | None = None
        if self.missing == "learn" and array.ndim == 2 and len(array) >= minimum_rows and has_missing(array):
            x, space = learn_matrix(array, what)
        else:
            x = observations(array, what, channels=self.channels, minimum_rows=minimum_rows)
        for key, values in factors.items():
            if values.shape != (len(x),) or values.dtype.kind not in "biufU":
                raise DataError(
                    f"labels {key} of {path.name}: {values.dtype} of shape {values.shape}, "
                    f"but {len(x)} numbers or words are needed, one for each row"
                )
        scaling = None if self.standardize == "auto" else self.standardize
        return make_dataset(x, name, factors=factors, scaling=scaling, cells=space)

    def rows(self, path: Path, space: Space | None, *, array: str | None = None, unseen: object = None) -> RowStream:
        """The rows in blocks; ``array`` is the one taken from an .npz that holds several."""
        stored = _StoredArray.find(path, self.array, array)
        with stored.opened() as (_, (shape, _, dtype)):
            check_numeric(dtype, stored.name)
        like = np.broadcast_to(np.zeros((), dtype), shape)  # of that shape, but without its memory
        x_shape = put_channels_first(like, stored.name, self.channels).shape[1:]
        if shape[0] == 0 or 0 in x_shape:
            raise DataError(f"{stored.name} has the shape {shape}: it is empty")

        def blocks() -> Iterator[Array]:
            row = 0
            for block in stored.blocks():
                x = _usable(put_channels_first(block, stored.name, self.channels))
                _refuse_flaws(x, stored.name, row, missing=space is not None and space.missing)
                row += len(x)
                yield x

        return RowStream(stored.name, x_shape, shape[0], blocks)


@dataclass(frozen=True)
class _StoredArray:
    """An array in a .npy file, or the member of an .npz."""

    path: Path
    member: str | None = None

    @classmethod
    def find(cls, path: Path, array: str | None = None, default: str | None = None) -> _StoredArray:
        """The array asked for, or the default one, or the only one."""
        if _first_bytes(path)[:2] != b"PK":
            if array is not None:
                raise DataError(f"{path.name} holds a single array: leave out array={array}")
            read_npy(path)  # refuses files that hold no array
            return cls(path)
        with _zip(path) as archive:
            members = [member.removesuffix(".npy") for member in archive.namelist() if member.endswith(".npy")]
        if not members:
            raise DataError(f"{path.name} holds no arrays: it is not a file written by numpy.savez")
        member = array or (members[0] if len(members) == 1 else default)
        names = ", ".join(members)
        if member is None or (member not in members and not array):
            advice = f"choose one, such as {path.name}:array={members[0]}"
            raise DataError(f"{path.name} holds {len(members)} arrays ({names}): {advice}")
        if member not in members:
            near = did_you_mean(member, members)
            raise DataError(f"{path.name} holds no array {member!r}{near} (it holds: {names})")
        return cls(path, member)

    @property
    def name(self) -> str:
        return self.path.name if self.member is None else f"array {self.member} of {self.path.name}"

    @contextmanager
    def opened(self) -> Iterator[tuple[IO[bytes], _Header]]:
        """Its bytes after the header, and the header."""
        if self.member is None:
            with self.path.open("rb") as file:
                yield file, _read_header(file, self.path.stat().st_size, self.name)
            return
        with _zip(self.path) as archive, archive.open(f"{self.member}.npy") as file:
            yield file, _read_header(file, archive.getinfo(f"{self.member}.npy").file_size, self.name)

    def read(self) -> Array:
        """The whole array; that of a .npy file is mapped."""
        if self.member is None:
            return read_npy(self.path)
        with self.opened() as (_, (shape, _, dtype)):
            advice = "save it with numpy.save as a .npy file, which is not read into memory as a whole"
            require_memory(dtype.itemsize * math.prod(shape), self.name, advice)
        with _zip(self.path) as archive, archive.open(f"{self.member}.npy") as file:
            array: Array = np.lib.format.read_array(file, allow_pickle=False)
        return array

    def blocks(self) -> Iterator[Array]:
        """The rows in order, some megabytes at a time."""
        with self.opened() as (file, (shape, fortran_order, dtype)):
            if fortran_order:  # a row's values lie apart
                whole = self.read()
                yield from (np.asarray(whole[rows]) for rows in row_blocks(whole, STREAMED))
                return
            row_bytes = dtype.itemsize * math.prod(shape[1:])
            size, left = max(1, STREAMED // max(1, row_bytes)), shape[0]
            while left:
                take = min(size, left)
                raw = file.read(take * row_bytes)
                if len(raw) != take * row_bytes:
                    raise DataError(f"{self.name} is cut short: save it again")
                yield np.frombuffer(raw, dtype).reshape(take, *shape[1:])
                left -= take


def observations(
    x: Array, what: str, *, channels: Channels = "auto", minimum_rows: int = 2, columns: Sequence[str] = ()
) -> Array:
    """The array as observations, every value finite; ``what`` names it in errors, ``columns`` those of a table.

    uint8 and bool images stay 8-bit. Other numbers become float32 where that holds every value of their type, else
    float64, so that a column with a large offset and a small spread is not rounded before it is standardised. An array
    that has its rows and type already is not copied, a memory-mapped one neither.
    """
    check_numeric(x.dtype, what)
    x = put_channels_first(x, what, channels)
    if len(x) < minimum_rows:
        held = "no rows" if len(x) == 0 else "only 1 row"
        raise DataError(f"{what} has {held}: at least {minimum_rows} are needed")
    if math.prod(x.shape[1:]) == 0:
        raise DataError(f"{what} has the shape {x.shape}: its rows are empty")
    if x.ndim == 4 and x.dtype in (np.uint8, np.bool_):
        return np.ascontiguousarray(x).view(np.uint8) if x.dtype == np.bool_ or not x.flags.c_contiguous else x
    dtype = np.float32 if np.can_cast(x.dtype, np.float32) else np.float64
    in_place = x.dtype == dtype and x.flags.c_contiguous
    result: Array = x if in_place else np.empty(x.shape, dtype)
    for rows in row_blocks(x):
        _refuse_flaws(x[rows], what, rows.start, columns=columns)
        if not in_place:
            result[rows] = x[rows]
    return result


def _usable(x: Array) -> Array:
    """8-bit images and float32 as they are, every other number as float64."""
    if x.ndim == 4 and x.dtype in (np.uint8, np.bool_):
        return x.view(np.uint8) if x.dtype == np.bool_ else x
    return x.astype(np.float32 if x.dtype in (np.float32, np.float16) else np.float64, copy=False)


def _refuse_flaws(x: Array, what: str, start: int, *, missing: bool = False, columns: Sequence[str] = ()) -> None:
    """Refuse a block of rows, the first of which is row ``start``, with a value that cannot be used."""
    if x.dtype == np.uint8 or (flaw := first_flaw(x, missing=missing)) is None:
        return
    row, rest = start + flaw.index[0], flaw.index[1:]
    where = f"in column {rest[0]}" if x.ndim == 2 else f"at index {list(rest)}"
    place = f"row {row} of {what} has {flaw.problem} {where} (counted from 0)"
    if columns and x.ndim == 2:
        place = f'row {row + 1} of {what} (counted from 1) has {flaw.problem} in column "{columns[rest[0]]}"'
    raise DataError(f"{place}: fill, scale or drop it; wiseale does not guess")


def check_numeric(dtype: np.dtype[Any], what: str) -> None:
    """Refuse what is not a real number."""
    if dtype.kind not in "biuf":
        kinds = {"c": "complex numbers", "O": "Python objects", "U": "text", "S": "text", "V": "records"}
        held = kinds.get(dtype.kind, "dates or times")
        raise DataError(f"{what} holds {held} ({dtype}): real numbers are needed (float, integer or bool)")


def put_channels_first(x: Array, what: str, channels: Channels) -> Array:
    """The rows as (n, features), (n, channels, length) or (n, channels, height, width)."""
    if channels == "none" and x.ndim in (2, 3):
        return x[:, None]
    if channels == "last" and x.ndim in (3, 4):
        return np.moveaxis(x, -1, 1)
    if x.ndim not in (2, 3, 4) or channels in ("none", "last"):
        wish = "" if channels in ("auto", "first") else f" with channels={channels}"
        raise DataError(f"{what} has the shape {x.shape}{wish}: {_SHAPES} is needed, reshape it")
    colours = (1, 3, 4)
    if channels == "auto" and x.ndim == 4 and x.shape[3] in colours and x.shape[1] not in colours:
        raise ChannelsError(what, x.shape)
    return x


def _first_bytes(path: Path) -> bytes:
    """The first six bytes of a file, which tell its type."""
    try:
        with path.open("rb") as file:
            start = file.read(6)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    if not start:
        raise DataError(f"{path.name} is empty")
    return start


def read_npy(path: Path) -> Array:
    """A .npy file, mapped into memory rather than read."""
    if _first_bytes(path) != b"\x93NUMPY":
        raise DataError(f"{path.name} is not an array written by numpy.save")
    with path.open("rb") as file:
        _read_header(file, path.stat().st_size, path.name)
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError) as error:
        raise DataError(f"{path.name} cannot be read: {error}") from None
    return array


@contextmanager
def _zip(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError):
        raise DataError(f"{path.name} is damaged or not an .npz file: save it again with numpy.savez") from None


_Header = tuple[tuple[int, ...], bool, np.dtype[Any]]
"""Of a .npy stream: its shape, whether it is in Fortran's order, and its dtype."""


def _read_header(file: IO[bytes], size: int, what: str) -> _Header:
    """Refuse a .npy stream of ``size`` bytes whose header is damaged, or declares objects or more than it holds."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran_order, dtype = read(file)
    except Exception:  # the header is Python text, whose parser fails in many ways
        raise DataError(f"{what} is damaged: its header cannot be read") from None
    if dtype.hasobject:  # pickled: never loaded
        check_numeric(dtype, what)
    if min(shape, default=0) < 0 or size - file.tell() < math.prod(shape) * dtype.itemsize:
        raise DataError(f"{what} is cut short: its header says {dtype} of shape {shape}; save it again")
    return shape, fortran_order, dtype
