"""Data frames of pandas, polars and Arrow, and matrices with missing cells: their columns as raw columns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from wiseale.data.dataset import Array, row_blocks
from wiseale.data.tables.blocks import RawBlock, Selection, select
from wiseale.data.tables.mixed import learn_space, read_mixed
from wiseale.data.tables.raw import RawColumn, from_arrow, from_values
from wiseale.errors import DataError
from wiseale.spaces import MixedSpace
from wiseale.spaces.frames import frame_names, library_of


def select_all(frame: Any, file: str = "X") -> Selection:
    """All columns of a frame or a matrix as features."""
    if not library_of(frame):
        return Selection(file, ("",) * frame.shape[1], tuple(range(frame.shape[1])), ())
    names = frame_names(frame)
    return replace(select(file, names, names), said=False)


def raw_blocks(frame: Any, chosen: Selection) -> Iterator[RawBlock]:
    """The chosen columns of a frame or a matrix, all rows in one block."""
    yield RawBlock([_column(frame, i) for i in chosen.features], [[] for _ in chosen.labels])


def _column(frame: Any, i: int) -> RawColumn:
    library = library_of(frame)
    if library == "pandas":
        return _pandas_column(frame.iloc[:, i])
    if library == "pyarrow":
        return from_arrow(frame.column(i).unify_dictionaries().combine_chunks())
    if library == "polars":
        column = frame[:, i]
        return from_arrow(column.to_arrow(), str(column.dtype))
    if frame.dtype.hasobject:
        return from_values(list(frame[:, i]), "object")
    values = frame[:, i].astype(np.float64)
    return RawColumn(np.where(np.isnan(values), math.nan, values))  # a NaN that signals becomes one that does not


def _pandas_column(series: Any) -> RawColumn:
    import pandas as pd
    from pandas.api import types

    dtype = str(series.dtype)
    if isinstance(series.dtype, pd.CategoricalDtype):
        # Levels that are neither words nor numbers, such as intervals, are words from here on.
        levels = [
            level if isinstance(level, str | int | float) else str(level) for level in series.cat.categories.tolist()
        ]
        cells = [None if code < 0 else levels[code] for code in series.cat.codes.tolist()]
        return replace(from_values(cells, "category"), categories=tuple(levels), ordered=bool(series.cat.ordered))
    if types.is_complex_dtype(series.dtype):
        raise DataError(f'column "{series.name}" holds complex numbers: give real ones')
    if types.is_bool_dtype(series.dtype) or types.is_numeric_dtype(series.dtype):
        numbers = series.to_numpy(dtype=np.float64, na_value=math.nan)
        return RawColumn(numbers, dtype, boolean=bool(types.is_bool_dtype(series.dtype)))
    if isinstance(series.dtype, pd.PeriodDtype):
        return RawColumn(np.full(len(series), math.nan), dtype, holds="dates")
    if series.dtype != object and not isinstance(series.dtype, pd.IntervalDtype):
        column = pa.array(series, from_pandas=True)
        return from_arrow(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column, dtype)
    return from_values([None if gone else v for v, gone in zip(series.tolist(), series.isna(), strict=True)], dtype)


def has_missing(x: Array) -> bool:
    """Whether a matrix of numbers has NaN."""
    return x.dtype.kind == "f" and any(bool(np.isnan(x[rows]).any()) for rows in row_blocks(x))


def learn_matrix(x: Array, what: str) -> tuple[Array, MixedSpace]:
    """The cells (n, C) of a matrix that has missing ones, and the kinds of its columns, which are called 1, 2, …."""
    empty = np.flatnonzero(np.all([np.isnan(x[rows]).all(0) for rows in row_blocks(x)], 0))
    if len(empty):
        column = f"column {empty[0] + 1} of {what} (counted from 1)"
        raise DataError(f"{column} is empty, all {len(x):,} cells are missing: leave it out")
    read = partial(raw_blocks, x)
    space, cells, _ = read_mixed(learn_space(select_all(x, what), read, {}), read)
    return cells, space
