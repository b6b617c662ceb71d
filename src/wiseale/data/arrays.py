"""Users' arrays: a memory-mapped ``.npy`` file, or one array of an ``.npz``; every value is checked before training."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from wiseale.config import Settings, setting
from wiseale.data.dataset import Array, Dataset
from wiseale.data.defaults import make_dataset
from wiseale.data.finite import first_flaw, row_blocks
from wiseale.data.tables.matrix import has_missing, learn_matrix
from wiseale.errors import DataError
from wiseale.platform.machine import require_memory
from wiseale.registry import did_you_mean
from wiseale.spaces import MixedSpace, Scaling

Channels = Literal["auto", "first", "last", "none"]

_SHAPES = "(n, features), (n, channels, length) or (n, channels, height, width)"


class ChannelsError(DataError):
    """Images whose last axis looks like that of the channels, which the user has to say.

    Attributes:
        what: the array.
        shape: its shape.
    """

    def __init__(self, what: str, shape: tuple[int, ...]) -> None:
        super().__init__(what, shape)
        self.what, self.shape = what, shape

    def __str__(self) -> str:
        file = self.what.rpartition(" of ")[2] if self.what.startswith("array ") else self.what
        return f"{self._problem}: write {file}:channels=last, or {file}:channels=first if it is not"

    def in_python(self) -> str:
        """The error as somebody is told it who has the array at hand."""
        swap = f"{self.what}.transpose(0, 1, 3, 2)"
        return f"{self._problem}: give {self.what}.transpose(0, 3, 1, 2), or {swap} if its channels are first already"

    @property
    def _problem(self) -> str:
        return f"{self.what} has the shape {self.shape}, which looks like (n, height, width, channels)"


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
        if first_bytes(path)[:2] == b"PK":
            array, factors = self._from_npz(path)
        elif self.array is not None:
            raise DataError(f"{path.name} holds a single array: leave out array={self.array}")
        else:
            array = read_npy(path)
            factors = {Path(file).stem: np.array(read_npy(path.parent / file)) for file in self.labels}
        what = f"array {self.array} of {path.name}" if self.array else path.name
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
        scaling: Scaling | None = None if self.standardize == "auto" else self.standardize
        return make_dataset(x, name, factors=factors, scaling=scaling, cells=space)

    def _from_npz(self, path: Path) -> tuple[Array, dict[str, Array]]:
        try:
            with zipfile.ZipFile(path) as archive:
                chosen = choose_member(archive, path.name, self.array, self.labels)
                read = {}
                for member in (chosen, *self.labels):
                    read[member] = _read_member(archive, f"{member}.npy", f"array {member} of {path.name}")
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError):
            raise DataError(f"{path.name} is damaged or not an .npz file: save it again with numpy.savez") from None
        return read[chosen], {label: read[label] for label in self.labels}


def choose_member(archive: zipfile.ZipFile, file: str, array: str | None, others: tuple[str, ...] = ()) -> str:
    """The name of the array to read: the one asked for, or the only one; it and ``others`` must be in the archive."""
    members = [member.removesuffix(".npy") for member in archive.namelist() if member.endswith(".npy")]
    if not members:
        raise DataError(f"{file} holds no arrays: it is not a file written by numpy.savez")
    chosen = array or (members[0] if len(members) == 1 else None)
    if chosen is None:
        raise DataError(
            f"{file} holds {len(members)} arrays ({', '.join(members)}): choose one, such as {file}:array={members[0]}"
        )
    for member in (chosen, *others):
        if member not in members:
            near = did_you_mean(member, members)
            raise DataError(f"{file} holds no array {member!r}{near} (it holds: {', '.join(members)})")
    return chosen


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
        if (flaw := first_flaw(x[rows])) is not None:
            row, rest = rows.start + flaw.index[0], flaw.index[1:]
            where = f"in column {rest[0]}" if x.ndim == 2 else f"at index {list(rest)}"
            place = f"row {row} of {what} has {flaw.problem} {where} (counted from 0)"
            if columns and x.ndim == 2:
                place = f'row {row + 1} of {what} (counted from 1) has {flaw.problem} in column "{columns[rest[0]]}"'
            raise DataError(f"{place}: fill, scale or drop it; wiseale does not guess")
        if not in_place:
            result[rows] = x[rows]
    return result


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


def first_bytes(path: Path) -> bytes:
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
    if first_bytes(path) != b"\x93NUMPY":
        raise DataError(f"{path.name} is not an array written by numpy.save")
    with path.open("rb") as file:
        read_header(file, path.stat().st_size, path.name)
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError) as error:
        raise DataError(f"{path.name} cannot be read: {error}") from None
    return array


def _read_member(archive: zipfile.ZipFile, member: str, what: str) -> Array:
    """One array of an .npz; its header is checked before memory is taken for it."""
    with archive.open(member) as file:
        size = archive.getinfo(member).file_size
        read_header(file, size, what)
    require_memory(size, what, "save it with numpy.save as a .npy file, which is not read into memory as a whole")
    with archive.open(member) as file:
        array: Array = np.lib.format.read_array(file, allow_pickle=False)
    return array


@dataclass(frozen=True)
class Header:
    """The header of a .npy stream."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]


def read_header(file: IO[bytes], size: int, what: str) -> Header:
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
    return Header(shape, fortran_order, dtype)
