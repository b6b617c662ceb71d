"""Write arrays and tables block by block to one file, atomically: it appears when complete.

Arrays go to ``.npy`` and ``.npz``, tables of numbers and words to ``.csv`` and ``.parquet``. A ``.csv`` that is made
from a text table is written like it: with its separator and decimal mark, and a header where it has one.
"""

from __future__ import annotations

import csv
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from wiseale.data.dataset import Array
from wiseale.data.tables.csv_form import Form
from wiseale.errors import DataError
from wiseale.platform.atomic_files import sync

FORMATS = (".npy", ".npz", ".csv", ".parquet")
_TABLES = (".csv", ".parquet")


@dataclass(frozen=True)
class Field:
    """One array of the file: its name, the shape and dtype of a row, and the column names used in a table.

    The dtype ``object`` is that of a column of Python values: words, numbers, None for a missing one.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    columns: tuple[str, ...] = ()


class _Writer(Protocol):
    def write(self, blocks: Sequence[Array]) -> None: ...

    def finish(self) -> Path: ...


class ArrayOutput:
    """A context manager that writes one file: ``write`` appends rows, and leaving the context puts the file in place.

    After an error no file is left. A path or format that cannot be written is refused by the constructor. ``form`` is
    that of a text table.
    """

    def __init__(self, path: Path, fields: Sequence[Field], form: Form | None = None) -> None:
        _check_writable(path, fields)
        self._path, self._fields = path, fields
        self._form = form or Form()
        self._folder = path.with_name(f".{path.name}.partial-{os.getpid()}")
        self._writer: _Writer | None = None
        self.rows = 0

    def __enter__(self) -> Self:
        try:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir()
            writers: dict[str, Callable[[Path, Sequence[Field]], _Writer]] = {
                ".npy": _Arrays,
                ".npz": partial(_Arrays, zipped=True),
                ".csv": partial(_Csv, form=self._form),
                ".parquet": _Parquet,
            }
            self._writer = writers[self._path.suffix.lower()](self._folder, self._fields)
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise DataError(f"cannot write {self._path}: {error.strerror}") from None
        return self

    def write(self, *blocks: Array) -> None:
        """Append rows: one array per field, all of the same length."""
        assert self._writer is not None
        try:
            self._writer.write(blocks)
        except OSError as error:
            raise DataError(f"cannot write {self._path}: {error.strerror}") from None
        self.rows += len(blocks[0])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._writer is not None
        try:
            complete = self._writer.finish()
            if kind is None:
                sync(complete)
                os.replace(complete, self._path)
        except OSError as failure:
            if kind is None:
                raise DataError(f"cannot write {self._path}: {failure.strerror}") from None
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)


def _check_writable(path: Path, fields: Sequence[Field]) -> None:
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise DataError(f"cannot write {path}: the name must end in {', '.join(FORMATS)}")
    if suffix not in _TABLES and any(field.dtype.hasobject for field in fields):
        raise DataError(f"{path.name} can only hold numbers, and the table has words: use .csv or .parquet")
    if suffix == ".npy" and len(fields) > 1:
        raise DataError(f"{path.name} holds a single array, not {' and '.join(f.name for f in fields)}: use .npz")
    if suffix in _TABLES and any(len(field.shape) > 1 for field in fields):
        raise DataError(f"{path.name} can only hold a table, and rows have the shape {fields[0].shape}: use .npy")
    if path.is_dir():
        raise DataError(f"cannot write {path}: it is a directory")
    if not path.absolute().parent.is_dir():
        raise DataError(f"cannot write {path}: there is no directory {path.absolute().parent}")


class _NpyFile:
    """A .npy file that grows: the header is rewritten with the number of rows at the end (NumPy pads it for that)."""

    def __init__(self, path: Path, field: Field) -> None:
        self.path = path
        self._field = field
        self._rows = 0
        self._file: IO[bytes] = path.open("wb")
        self._write_header()
        self._start = self._file.tell()

    def _write_header(self) -> None:
        descr = np.lib.format.dtype_to_descr(self._field.dtype)
        shape = (self._rows, *self._field.shape)
        np.lib.format.write_array_header_1_0(self._file, {"descr": descr, "fortran_order": False, "shape": shape})

    def write(self, block: Array) -> None:
        self._file.write(np.ascontiguousarray(block, self._field.dtype).data)
        self._rows += len(block)

    def finish(self) -> Path:
        with self._file:
            self._file.seek(0)
            self._write_header()
            assert self._file.tell() == self._start
        return self.path


class _Arrays:
    """Each array grows in its own .npy file; those of an .npz are put into one archive at the end."""

    def __init__(self, folder: Path, fields: Sequence[Field], *, zipped: bool = False) -> None:
        self._archive = folder / "arrays.npz" if zipped else None
        self._files = [_NpyFile(folder / f"{field.name}.npy", field) for field in fields]

    def write(self, blocks: Sequence[Array]) -> None:
        for file, block in zip(self._files, blocks, strict=True):
            file.write(block)

    def finish(self) -> Path:
        paths = [file.finish() for file in self._files]
        if self._archive is None:
            return paths[0]
        with zipfile.ZipFile(self._archive, "w", zipfile.ZIP_STORED) as archive:
            for path in paths:
                archive.write(path, path.name)
                path.unlink()
        return self._archive


def _columns(fields: Sequence[Field], blocks: Sequence[Array]) -> Iterator[tuple[np.dtype[Any], Array]]:
    """The columns of a table, and their dtypes."""
    for field, block in zip(fields, blocks, strict=True):
        for column in np.asarray(block, field.dtype).reshape(len(block), -1).T:
            yield field.dtype, column


class _Csv:
    def __init__(self, folder: Path, fields: Sequence[Field], form: Form) -> None:
        self._path, self._fields = folder / "table.csv", fields
        self._file = self._path.open("w", encoding="utf-8", newline="")
        self._rows = csv.writer(self._file, delimiter=form.separator, lineterminator="\n")
        self._mark = "." if form.decimal == "point" else ","
        if form.header:
            self._rows.writerow([name for field in fields for name in field.columns])

    def write(self, blocks: Sequence[Array]) -> None:
        cells = []
        for dtype, column in _columns(self._fields, blocks):
            write = self._single if dtype == np.float32 else self._cell
            cells.append(list(map(write, column.tolist())))
        self._rows.writerows(zip(*cells, strict=True))

    def finish(self) -> Path:
        self._file.close()
        return self._path

    def _single(self, value: float) -> str:
        """Nine significant digits restore any float32 exactly."""
        return f"{value:.9g}".replace(".", self._mark)

    def _cell(self, value: Any) -> str:
        """A Python value: empty for a missing one, words as they are, fractions with the table's decimal mark."""
        if isinstance(value, float):
            return repr(value).replace(".", self._mark)
        return "" if value is None else str(value)


class _Parquet:
    """One row group per block."""

    def __init__(self, folder: Path, fields: Sequence[Field]) -> None:
        self._path, self._fields = folder / "table.parquet", fields
        self._writer: Any = None

    def write(self, blocks: Sequence[Array]) -> None:
        columns = [pa.array(c.tolist() if dtype.hasobject else c) for dtype, c in _columns(self._fields, blocks)]
        table = pa.table(columns, names=[name for field in self._fields for name in field.columns])
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table.cast(self._writer.schema))

    def finish(self) -> Path:
        if self._writer is not None:
            self._writer.close()
        return self._path
