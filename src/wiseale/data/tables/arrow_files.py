"""Tables in Parquet and Arrow files (Feather, ``.arrow``), read batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from wiseale.data.tables.arrow_columns import raw_column
from wiseale.data.tables.blocks import RawBlock
from wiseale.data.tables.columns import Selection
from wiseale.data.tables.table import Reader, TableFile
from wiseale.errors import DataError

_ROWS = 1 << 16  # in a batch
_PANDAS_INDEX = "__index_level_"  # pandas stores its index under such names


@dataclass(frozen=True)
class ParquetFile(TableFile):
    """The columns of a Parquet file."""

    def open(self, path: Path) -> tuple[Sequence[str], Reader]:
        """Read the file's schema."""
        with _intact(f"{path.name} is damaged or not a Parquet file"):
            file = pyarrow.parquet.ParquetFile(path, memory_map=True)
            return _named(file.schema_arrow), _Reader(lambda names: file.iter_batches(_ROWS, columns=names))


@dataclass(frozen=True)
class ArrowFile(TableFile):
    """The columns of a Feather file or another one in Arrow's format for files or for streams."""

    def open(self, path: Path) -> tuple[Sequence[str], Reader]:
        """Read the file's schema."""
        with _intact(f"{path.name} is damaged or not an Arrow file"):
            schema, _ = _open_batches(path)
            return _named(schema), _Reader(lambda names: _parts(path, names))


@dataclass(frozen=True)
class _Reader:
    batches: Callable[[list[str]], Iterator[pa.RecordBatch]]
    form = None
    line_of = None

    def raw(self, chosen: Selection) -> Iterator[RawBlock]:
        names = [chosen.names[i] for i in dict.fromkeys(chosen.features + chosen.labels)]
        with _intact(f"{chosen.file} is damaged: write it again"):
            for batch in self.batches(names):
                labels = [_words(batch.column(chosen.names[i])) for i in chosen.labels]
                yield RawBlock([raw_column(batch.column(chosen.names[i])) for i in chosen.features], labels)


def _open_batches(path: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema of an Arrow file or stream, and its batches, whose cells stay in the file until they are used."""
    file = pa.memory_map(str(path))
    try:
        whole = pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        stream = pa.ipc.open_stream(file)
        return stream.schema, iter(stream)
    return whole.schema, map(whole.get_batch, range(whole.num_record_batches))


def _parts(path: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    for batch in _open_batches(path)[1]:
        columns = batch.select(names)
        columns.validate(full=True)  # offsets in the file may point anywhere
        for start in range(0, len(columns), _ROWS):
            yield columns.slice(start, _ROWS)


@contextmanager
def _intact(problem: str) -> Iterator[None]:
    """Refuse a damaged file: pyarrow raises many exceptions for one."""
    try:
        yield
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError):
        raise DataError(problem) from None


def _named(schema: pa.Schema) -> list[str]:
    return [name for name in schema.names if not name.startswith(_PANDAS_INDEX)]


def _words(column: pa.Array) -> list[str]:
    return ["" if value is None else str(value) for value in column.to_pylist()]
