"""Tables in Parquet files, read with pyarrow where it is installed, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wiseale.data.tables.arrow_columns import raw_column
from wiseale.data.tables.blocks import Block, CellError, RawBlock, place
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
        try:
            import pyarrow.parquet
        except ImportError:
            raise DataError(f"reading {path.name} needs pyarrow: pip install 'wiseale[parquet]'") from None
        try:
            file = pyarrow.parquet.ParquetFile(path, memory_map=True)
            names = file.schema_arrow.names
        except _damage():
            raise DataError(f"{path.name} is damaged or not a Parquet file") from None
        return [name for name in names if not name.startswith(_PANDAS_INDEX)], _ParquetReader(file)


@dataclass(frozen=True)
class _ParquetReader:
    file: Any
    form: None = None

    def __call__(self, chosen: Selection) -> Iterator[Block]:
        types = self.file.schema_arrow
        wrong = [i for i in chosen.features if not _is_numeric(types.field(chosen.names[i]).type)]
        if wrong:
            held = types.field(chosen.names[wrong[0]]).type
            raise CellError(
                f"column {chosen.called(wrong[:1])} of {chosen.file} holds {held}, not numbers: leave it out with "
                f"{chosen.file}:drop={chosen.spelled(wrong)}, or colour plots by it with "
                f"{chosen.file}:labels={chosen.spelled(wrong[:1])}"
            )
        names = [chosen.names[i] for i in dict.fromkeys(chosen.features + chosen.labels)]
        row = 0
        try:
            for batch in self.file.iter_batches(_ROWS, columns=names):
                values = np.empty((len(batch), len(chosen.features)))
                for column, i in enumerate(chosen.features):
                    values[:, column] = _numbers(batch.column(chosen.names[i]), chosen, i, row)
                labels = [_words(batch.column(chosen.names[i])) for i in chosen.labels]
                yield Block(values, labels)
                row += len(batch)
        except _damage():
            raise DataError(f"{chosen.file} is damaged: write it again") from None

    def raw(self, chosen: Selection) -> Iterator[RawBlock]:
        names = [chosen.names[i] for i in dict.fromkeys(chosen.features + chosen.labels)]
        try:
            for batch in self.file.iter_batches(_ROWS, columns=names):
                labels = [_words(batch.column(chosen.names[i])) for i in chosen.labels]
                yield RawBlock([raw_column(batch.column(chosen.names[i])) for i in chosen.features], labels)
        except _damage():
            raise DataError(f"{chosen.file} is damaged: write it again") from None


def _damage() -> tuple[type[Exception], ...]:
    """The exceptions that pyarrow raises for a damaged file."""
    import pyarrow

    return (pyarrow.ArrowException, OSError, ValueError, KeyError, MemoryError)


def _is_numeric(kind: Any) -> bool:
    import pyarrow.types as kinds

    kind = kind.value_type if kinds.is_dictionary(kind) else kind
    return any(test(kind) for test in (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal))


def _numbers(column: Any, chosen: Selection, i: int, start: int) -> Any:
    """(rows,) float64 of one column of a batch that begins at row ``start``."""
    if column.null_count:
        row = start + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        where = place(chosen, row, None)
        raise CellError(
            f"{where} has an empty cell in column {chosen.called([i])}: fill or drop it; wiseale does not guess"
        )
    return column.cast("float64").to_numpy(zero_copy_only=False)


def _words(column: Any) -> list[str]:
    return ["" if value is None else str(value) for value in column.to_pylist()]
