"""Arrow columns, of files, Arrow tables and polars, as raw columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from wiseale.data.tables.raw import RawColumn, Text


def raw_column(column: pa.Array, dtype: str = "") -> RawColumn:
    """An Arrow array as a raw column; ``dtype`` is the name that its data frame has for the type."""
    kind = column.type
    dtype = dtype or str(kind)
    categories: tuple[Any, ...] | None = None
    ordered = False
    if types.is_dictionary(kind):
        if not _is_numeric(kind.value_type):
            categories, ordered = tuple(dict.fromkeys(column.dictionary.to_pylist())), bool(kind.ordered)
        column, kind = column.cast(kind.value_type), kind.value_type
    if types.is_boolean(kind) or _is_numeric(kind):
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return RawColumn(values, dtype, boolean=types.is_boolean(kind))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        column = column.cast(pa.large_string()) if types.is_string_view(kind) else column
        return RawColumn(Text(column), dtype, categories=categories, ordered=ordered)
    nothing = np.full(len(column), math.nan)
    if types.is_null(kind):
        return RawColumn(nothing, dtype)
    if types.is_duration(kind):
        return RawColumn(nothing, dtype, holds="durations")
    return RawColumn(nothing, dtype, holds="dates" if types.is_temporal(kind) else "nested values")


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
