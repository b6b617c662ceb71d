"""Users' tables: files of any type as datasets, of numbers alone or of columns with kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from wiseale.config import Settings, setting
from wiseale.data.dataset import Array, Dataset, RowStream
from wiseale.data.defaults import make_dataset
from wiseale.data.tables.blocks import CellError, Cells, RawBlock, Selection, as_numbers, gather, select
from wiseale.data.tables.csv_form import Form
from wiseale.data.tables.kinds import parse_kinds
from wiseale.data.tables.mixed import encoded, learn_space, leave_out_row_numbers, read_mixed
from wiseale.data.tables.raw import from_arrow
from wiseale.errors import DataError
from wiseale.spaces import MixedSpace, Space, TableSpace
from wiseale.spaces.columns import Unseen

_ROWS = 1 << 16  # in a batch
_PANDAS_INDEX = "__index_level_"  # pandas stores its index under such names


@dataclass(frozen=True)
class Reader:
    """Reads the chosen columns of a table, block by block, in order.

    Attributes:
        raw: the features as they are written, and the labels.
        form: how the table is written, where it is text.
        line_of: the line of a row of data, counted from 0, where the table is text.
    """

    raw: Callable[[Selection], Iterator[RawBlock]]
    form: Form | None = None
    line_of: Callable[[int], int | None] | None = None


@dataclass(frozen=True)
class TableFile(Settings):
    """Named columns; one row is one observation."""

    columns: tuple[str, ...] = setting((), "columns to learn from, by name or number from 1 (default: all)")
    drop: tuple[str, ...] = setting((), "columns to leave out")
    labels: tuple[str, ...] = setting((), "columns, of words or numbers, to colour plots by; never learned from")
    kinds: str = setting("", "kinds of columns: price:number,colour:category,sold:binary,species:label")
    missing: Literal["learn", "error"] = setting("learn", "error refuses missing cells")
    unseen: Unseen = setting("error", "what a level that training did not see is: error, missing, or other")
    standardize: Literal["auto", "none", "columns", "global"] = setting("auto", "by which mean and scale")

    def load(self, path: Path, name: str, *, training: bool = True) -> Dataset:
        """Read the file; ``training=False`` accepts a single row.

        A table of numbers alone is a matrix of them; otherwise the columns get kinds, see
        :mod:`wiseale.data.tables.mixed`.
        """
        names, read = self.open(path)
        asked = parse_kinds(self.kinds)
        labels = dict.fromkeys((*self.labels, *(name for name, kind in asked.items() if kind == "label")))
        kinds = {name: kind for name, kind in asked.items() if kind != "label"}
        roles = (self.columns, self.drop, tuple(labels))
        chosen = select(path.name, names, *roles, row_numbers=True, line_of=read.line_of)
        space: MixedSpace | None = None
        try:
            if kinds:
                raise CellError("kinds are said")
            x, factors = gather(chosen, as_numbers(chosen, read.raw(chosen)))
            learned, x = leave_out_row_numbers(chosen, x)
        except CellError:
            learned = learn_space(chosen, read.raw, kinds, self.missing, self.unseen)
            if learned.space is None:
                x, factors = gather(learned.chosen, as_numbers(learned.chosen, read.raw(learned.chosen)))
            else:
                space, x, factors = read_mixed(learned, read.raw)
        if len(x) < 1 + training:
            held = "no rows" if len(x) == 0 else "only 1 row"
            raise DataError(f"{path.name} has {held}: at least {1 + training} are needed")
        return make_dataset(
            x,
            name,
            factors=factors,
            columns=learned.chosen.learned,
            scaling=None if self.standardize == "auto" else self.standardize,
            cells=space,
            ignored=learned.ignored,
        )

    def rows(
        self, path: Path, space: Space | None, *, array: str | None = None, unseen: Unseen | None = None
    ) -> RowStream:
        """The rows in blocks, as ``space`` is written if it has columns."""
        if isinstance(space, TableSpace) and space.missing:
            return self.cells(path, space, unseen).rows()
        names, read = self.open(path)
        known = space.names if space else ()
        free = not self.columns and not self.drop
        wanted = known if free else self.columns
        chosen = select(path.name, names, wanted, self.drop, self.labels, line_of=read.line_of)
        columns = chosen.learned
        if known and len(columns) == len(known) and columns != known and not free:
            differ = next(i for i, (ours, theirs) in enumerate(zip(known, columns, strict=True)) if ours != theirs)
            raise DataError(
                f'column {differ + 1} chosen from {path.name} is "{columns[differ]}", '
                f'the model was trained on "{known[differ]}" there: choose the same columns in the same order'
            )

        def blocks() -> Iterator[Array]:
            return (values for values, _ in _some(chosen, as_numbers(chosen, read.raw(chosen))))

        return RowStream(path.name, (len(columns),), None, blocks, columns)

    def cells(self, path: Path, space: TableSpace, unseen: Unseen | None = None) -> CellStream:
        """The columns by the space's names, wherever they stand."""
        names, read = self.open(path)
        chosen = select(path.name, names, [column.name for column in space.written], line_of=read.line_of)
        others = tuple(i for i in range(len(names)) if i not in chosen.features)
        return CellStream(replace(chosen, labels=others), read, space, unseen or space.unseen)

    def open(self, path: Path) -> tuple[Sequence[str], Reader]:
        """The names of the columns, and what reads the chosen ones."""
        raise NotImplementedError


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

    def blocks(self) -> Cells:
        """Cells as numbers, and as they are written; the labels are the other columns' text."""
        return _some(self.chosen, encoded(self.space, self.chosen, self.read.raw, self.unseen))

    def rows(self) -> RowStream:
        """The cells alone."""
        alone = replace(self, chosen=replace(self.chosen, labels=()))
        return RowStream(self.chosen.file, self.space.x_shape, None, lambda: (cells for cells, _ in alone.blocks()))


def _some(chosen: Selection, blocks: Cells) -> Cells:
    """The blocks; an error if there is none."""
    block = None
    for block in blocks:
        yield block
    if block is None:
        raise DataError(f"{chosen.file} has no rows: at least 1 is needed")


@dataclass(frozen=True)
class ParquetFile(TableFile):
    """The columns of a Parquet file."""

    def open(self, path: Path) -> tuple[Sequence[str], Reader]:
        """Read the file's schema."""
        with _intact(f"{path.name} is damaged or not a Parquet file"):
            file = pyarrow.parquet.ParquetFile(path, memory_map=True)
            return _named(file.schema_arrow), Reader(
                partial(_raw_blocks, lambda names: file.iter_batches(_ROWS, columns=names))
            )


@dataclass(frozen=True)
class ArrowFile(TableFile):
    """The columns of a Feather file or another one in Arrow's format for files or for streams."""

    def open(self, path: Path) -> tuple[Sequence[str], Reader]:
        """Read the file's schema."""
        with _intact(f"{path.name} is damaged or not an Arrow file"):
            schema, _ = _open_batches(path)
            return _named(schema), Reader(partial(_raw_blocks, partial(_parts, path)))


def _raw_blocks(batches: Callable[[list[str]], Iterator[pa.RecordBatch]], chosen: Selection) -> Iterator[RawBlock]:
    names = [chosen.names[i] for i in dict.fromkeys(chosen.features + chosen.labels)]
    with _intact(f"{chosen.file} is damaged: write it again"):
        for batch in batches(names):
            labels = [_words(batch.column(chosen.names[i])) for i in chosen.labels]
            yield RawBlock([from_arrow(batch.column(chosen.names[i])) for i in chosen.features], labels)


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
