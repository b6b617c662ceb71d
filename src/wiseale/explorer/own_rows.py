"""Rows that a user drops on the page: an image, a table or an array, as the model reads its data."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from wiseale.data.arrays import check_numeric, observations, read_npy
from wiseale.data.dataset import Array
from wiseale.data.images.decode import Block, Form, decode_blocks
from wiseale.data.source import open_rows
from wiseale.errors import DataError
from wiseale.models.inference import Codec

MOST_OWN_ROWS = 32


def read_own_rows(codec: Codec, content: bytes, suffix: str) -> tuple[Array, int]:
    """The first rows of a dropped file as they are stored, (n, *x_shape), and how many rows it holds."""
    if not content:
        raise DataError("the dropped file is empty")
    reader = _READERS.get(suffix)
    if reader is None:
        raise DataError(f"cannot read .{suffix}: drop {', '.join(sorted({f'.{name}' for name in _READERS}))}")
    with tempfile.TemporaryDirectory(prefix="wiseale-") as folder:
        path = Path(folder) / f"dropped.{suffix}"  # the user's own name for it never reaches the file system
        path.write_bytes(content)
        rows = reader(codec, path)
    if rows.shape[1:] != codec.model.x_shape:
        raise DataError(f"the dropped rows have the shape {rows.shape[1:]}, the model takes {codec.model.x_shape}")
    return rows[:MOST_OWN_ROWS], len(rows)


def _table(codec: Codec, path: Path) -> Array:
    if len(codec.model.x_shape) > 1:
        raise DataError(f"the model takes rows of shape {codec.model.x_shape}: drop an .npy instead of a table")
    try:
        return np.concatenate(list(open_rows(str(path), space=codec.space).blocks()))
    except DataError as named:
        if codec.space.missing:
            raise
        try:  # a row of numbers alone, without a header
            stream = open_rows(f"{path}:header=false").require(codec.model.x_shape)
            return np.concatenate(list(stream.blocks()))
        except DataError:
            raise named from None


def _array(codec: Codec, path: Path) -> Array:
    array = np.array(read_npy(path))
    if array.shape == codec.model.x_shape:
        array = array[None]
    elif array.shape == codec.model.x_shape[1:] and codec.model.x_shape[0] == 1:
        array = array[None, None]  # one channel left out
    if array.shape[1:] != codec.model.x_shape:
        raise DataError(f"the dropped array has the shape {array.shape}, a row of the model {codec.model.x_shape}")
    if not codec.space.missing:
        return observations(array, "the dropped array", channels="first", minimum_rows=1)
    if any(column.has_levels for column in codec.space.columns):
        raise DataError("an array cannot name the levels of this model's columns: drop a .csv with their names")
    check_numeric(array.dtype, "the dropped array")
    missing, cells = np.isnan(array), np.nan_to_num(array.astype(np.float64), posinf=np.inf, neginf=-np.inf)
    rows = observations(cells, "the dropped array", channels="first", minimum_rows=1)
    return np.where(missing, np.nan, rows)


def _image(codec: Codec, path: Path) -> Array:
    """The image as the model's data is made from files: a centred square, resized; decoded in a process of its own."""
    shape = codec.model.x_shape
    if len(shape) != 3 or shape[1] != shape[2] or shape[0] not in (1, 3):
        raise DataError(f"the model takes rows of shape {shape}, not square images: drop an .npy instead")
    target = path.with_suffix(".rows")
    target.touch()
    block = Block(str(target), 0, [path.name])
    (result,) = decode_blocks(str(path.parent), False, Form(shape[1], None, shape[0]), [block], 1)
    if result.bad or result.exit_code is not None or result.fault or result.errno is not None:
        reason = next(iter(result.bad.values()), "cannot be decoded")
        raise DataError(f"the dropped image cannot be used: {reason}")
    rows = np.fromfile(target, np.uint8).reshape(1, *shape)
    return rows.astype(np.float32) / 255 if codec.space.reading == "values" else rows


_READERS: dict[str, Callable[[Codec, Path], Array]] = {
    "csv": _table,
    "tsv": _table,
    "npy": _array,
    **dict.fromkeys(("png", "jpg", "jpeg", "bmp", "gif", "webp", "pgm", "ppm", "tif", "tiff"), _image),
}
