"""Arrow columns, of Parquet files, Arrow tables and polars, as raw columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wiseale.data.tables.raw import RawColumn


def raw_column(column: Any, dtype: str = "") -> RawColumn:
    """An Arrow array as a raw column; ``dtype`` is the name that its data frame has for the type."""
    import pyarrow
    from pyarrow import types

    kind = column.type
    dtype = dtype or str(kind)
    categories: tuple[Any, ...] | None = None
    ordered = False
    if types.is_dictionary(kind):
        words = not _is_numeric(kind.value_type)
        if words:
            chunks = column.chunks if isinstance(column, pyarrow.ChunkedArray) else [column]
            seen = dict.fromkeys(value for chunk in chunks for value in chunk.dictionary.to_pylist())
            categories, ordered = tuple(seen), bool(kind.ordered)
        column, kind = column.cast(kind.value_type), kind.value_type
    if types.is_null(kind):
        return RawColumn(np.full(len(column), math.nan), dtype)
    if types.is_boolean(kind) or _is_numeric(kind):
        values = np.asarray(column.cast("float64").to_numpy(zero_copy_only=False), np.float64)
        return RawColumn(values, dtype, boolean=types.is_boolean(kind))
    if types.is_duration(kind):
        return RawColumn(np.full(len(column), math.nan), dtype, holds="durations")
    if types.is_temporal(kind):
        return RawColumn(np.full(len(column), math.nan), dtype, holds="dates")
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return RawColumn(column.to_pylist(), dtype, categories=categories, ordered=ordered)
    return RawColumn(np.full(len(column), math.nan), dtype, holds="nested values")


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
