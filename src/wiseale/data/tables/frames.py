"""Data frames of pandas, polars and Arrow: their columns as raw columns, and cells as a frame of the same form.

Neither pandas nor polars is required: which library a frame belongs to is known by the module of its class.
"""

from __future__ import annotations

import datetime
import decimal
import importlib.util
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from wiseale.data.dataset import Array
from wiseale.data.tables.arrow_columns import raw_column
from wiseale.data.tables.blocks import RawBlock
from wiseale.data.tables.columns import Selection, select
from wiseale.data.tables.raw import RawColumn, Text
from wiseale.data.tables.schema import Column, TableSchema
from wiseale.errors import DataError

_CLASSES = {("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")}


def library_of(frame: Any) -> str:
    """``"pandas"``, ``"polars"`` or ``"pyarrow"`` for their data frames, empty for anything else."""
    names = {(cls.__module__.partition(".")[0], cls.__name__) for cls in type(frame).__mro__}
    return next((library for library, _ in _CLASSES & names), "")


def frame_names(frame: Any) -> tuple[str, ...]:
    """Names of a frame's columns."""
    return tuple(str(name) for name in (frame.column_names if library_of(frame) == "pyarrow" else frame.columns))


def select_all(frame: Any) -> Selection:
    """All columns of a frame or a matrix as features."""
    names = frame_names(frame) if library_of(frame) else ("",) * frame.shape[1]
    if not library_of(frame):
        return Selection("X", names, tuple(range(len(names))), ())
    return replace(select("X", names, names, (), ()), said=False)


def raw_blocks(frame: Any, chosen: Selection) -> Iterator[RawBlock]:
    """The chosen columns of a frame or a matrix, all rows in one block."""
    yield RawBlock([_column(frame, i) for i in chosen.features], [[] for _ in chosen.labels])


def _column(frame: Any, i: int) -> RawColumn:
    library = library_of(frame)
    if library == "pandas":
        return _pandas_column(frame.iloc[:, i])
    if library == "pyarrow":
        return raw_column(frame.column(i).unify_dictionaries().combine_chunks())
    if library == "polars":
        column = frame[:, i]
        return raw_column(column.to_arrow(), str(column.dtype))
    if frame.dtype.hasobject:
        return _python_values(list(frame[:, i]), "object")
    values = frame[:, i].astype(np.float64)
    return RawColumn(np.where(np.isnan(values), math.nan, values))  # a NaN that signals becomes one that does not


def _pandas_column(series: Any) -> RawColumn:
    import pandas as pd
    from pandas.api import types

    dtype = str(series.dtype)
    if isinstance(series.dtype, pd.CategoricalDtype):
        categories = tuple(series.cat.categories.tolist())
        values = series.astype(object).where(series.notna(), None).tolist()
        numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in categories)
        cells: Any = np.array([math.nan if v is None else float(v) for v in values]) if numeric else values
        return RawColumn(cells, "category", categories=categories, ordered=bool(series.cat.ordered))
    if types.is_bool_dtype(series.dtype) or types.is_numeric_dtype(series.dtype):
        if types.is_complex_dtype(series.dtype):
            raise DataError(f'column "{series.name}" holds complex numbers: give real ones')
        numbers = series.to_numpy(dtype=np.float64, na_value=math.nan)
        return RawColumn(numbers, dtype, boolean=bool(types.is_bool_dtype(series.dtype)))
    if isinstance(series.dtype, pd.StringDtype):
        cells = pa.array(series, pa.large_string(), from_pandas=True)
        return RawColumn(Text(cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells), dtype)
    if types.is_timedelta64_dtype(series.dtype):
        return RawColumn(np.full(len(series), math.nan), dtype, holds="durations")
    if types.is_datetime64_any_dtype(series.dtype) or isinstance(series.dtype, pd.PeriodDtype):
        return RawColumn(np.full(len(series), math.nan), dtype, holds="dates")
    missing = series.isna().to_numpy()
    values = [None if gone else value for value, gone in zip(series.tolist(), missing, strict=True)]
    return _python_values(values, dtype)


def _python_values(values: list[Any], dtype: str) -> RawColumn:
    """Any Python values: words, numbers, truth values, dates or nested ones."""
    values = [None if isinstance(value, float) and math.isnan(value) else value for value in values]
    present = [value for value in values if value is not None]
    if any(isinstance(value, list | tuple | dict | set | np.ndarray) for value in present):
        return RawColumn(np.full(len(values), math.nan), dtype, holds="nested values")
    if present and all(isinstance(value, datetime.timedelta) for value in present):
        return RawColumn(np.full(len(values), math.nan), dtype, holds="durations")
    if present and all(isinstance(value, datetime.date | datetime.time) for value in present):
        return RawColumn(np.full(len(values), math.nan), dtype, holds="dates")
    if present and all(isinstance(value, bool | np.bool_) for value in present):
        return RawColumn(np.array([math.nan if v is None else float(v) for v in values]), dtype, boolean=True)
    numbers = (int, float, np.integer, np.floating, decimal.Decimal)
    if all(isinstance(value, numbers) for value in present):
        return RawColumn(np.array([math.nan if v is None else float(v) for v in values]), dtype)
    return RawColumn(values, dtype)


def write_frame(schema: TableSchema, cells: Array, like: Any = None) -> Any:
    """Cells (n, C) as a frame of the library, types and categories they were learned from.

    Where that was no frame: a pandas frame if there are words and pandas is installed, else an array. ``like`` is a
    frame whose rows these are: its index is kept.
    """
    columns = [column.decode(np.asarray(cells[:, i], np.float64)) for i, column in enumerate(schema.columns)]
    library = schema.frame or _fallback(columns)
    if library == "pandas":
        import pandas as pd

        index = like.index if library_of(like) == "pandas" else None
        named = zip(schema.columns, columns, strict=True)
        return pd.concat([_pandas_series(column, values, index) for column, values in named], axis=1)
    if library == "polars":
        import polars as pl

        return pl.DataFrame([_polars_series(c, values) for c, values in zip(schema.columns, columns, strict=True)])
    if library == "pyarrow":
        arrays = [_arrow_array(column, values) for column, values in zip(schema.columns, columns, strict=True)]
        return pa.table(arrays, names=list(schema.names))
    return np.stack(columns, axis=1)


def _fallback(columns: Sequence[Array]) -> str:
    words = any(column.dtype == object for column in columns)
    return "pandas" if words and importlib.util.find_spec("pandas") else ""


def _pandas_series(column: Column, values: Array, index: Any) -> Any:
    import pandas as pd

    if column.dtype == "category":
        dtype = pd.CategoricalDtype(list(column.levels), column.ordered)
        return pd.Series(values, index, dtype, name=column.name)
    series = pd.Series(values, index, name=column.name)
    if not column.dtype or series.isna().any():
        return series.infer_objects()
    if np.issubdtype(values.dtype, np.number) and column.dtype.lower().startswith(("int", "uint")):
        limits = np.iinfo(column.dtype.lower().partition("[")[0])
        series = series.clip(float(limits.min), float(limits.max))
    return series.astype(column.dtype)


def _polars_series(column: Column, values: Array) -> Any:
    import polars as pl

    base = column.dtype.partition("(")[0]
    dtype = pl.Enum([str(level) for level in column.levels]) if base == "Enum" else getattr(pl, base, None)
    series = pl.Series(column.name, values.tolist())
    return series if dtype is None else series.cast(dtype, strict=False)


def _arrow_array(column: Column, values: Array) -> Any:
    array = pa.array(values.tolist())
    if column.dtype.startswith("dictionary"):
        return array.dictionary_encode()
    try:
        return array.cast(pa.type_for_alias(column.dtype), safe=False)
    except (ValueError, KeyError):  # a type without a short name
        return array
