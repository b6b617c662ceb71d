"""Data frames of pandas, polars and Arrow: cells as a frame of the library and the types they were learned from."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wiseale.spaces.columns import Column
from wiseale.spaces.space import Array

_CLASSES = {("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")}


def library_of(frame: Any) -> str:
    """``"pandas"``, ``"polars"`` or ``"pyarrow"`` for their data frames, empty for anything else."""
    names = {(cls.__module__.partition(".")[0], cls.__name__) for cls in type(frame).__mro__}
    return next((library for library, _ in _CLASSES & names), "")


def frame_names(frame: Any) -> tuple[str, ...]:
    """Names of a frame's columns."""
    return tuple(str(name) for name in (frame.column_names if library_of(frame) == "pyarrow" else frame.columns))


def pick(frame: Any, names: Sequence[str]) -> Any:
    """The columns of a frame with these names, in this order."""
    if library_of(frame) == "pandas":
        known = frame_names(frame)
        return frame.iloc[:, [known.index(name) for name in names]]  # a name may be a number: 3 is called "3"
    return frame.select(list(names))


def beside(frame: Any, values: Mapping[str, Array]) -> Any:
    """A frame with further columns of numbers."""
    library = library_of(frame)
    if library == "pandas":
        return frame.assign(**values)
    if library == "polars":
        import polars as pl

        return frame.with_columns([pl.Series(name, numbers) for name, numbers in values.items()])
    import pyarrow as pa

    for name, numbers in values.items():
        frame = frame.append_column(name, pa.array(np.ascontiguousarray(numbers)))
    return frame


def write_frame(columns: Sequence[Column], cells: Array, library: str = "", like: Any = None) -> Any:
    """Cells (n, C) as a frame of this library, with the types and categories of the columns.

    Without a library: a pandas frame if there are words and pandas is installed, else an array. ``like`` is a
    frame whose rows these are: its index is kept.
    """
    values = [column.decode(np.asarray(cells[:, i], np.float64)) for i, column in enumerate(columns)]
    if not library and any(cells.dtype == object for cells in values) and importlib.util.find_spec("pandas"):
        library = "pandas"
    if library == "pandas":
        import pandas as pd

        index = like.index if library_of(like) == "pandas" else None
        return pd.concat([_pandas_series(*pair, index) for pair in zip(columns, values, strict=True)], axis=1)
    if library == "polars":
        import polars as pl

        return pl.DataFrame([_polars_series(*pair) for pair in zip(columns, values, strict=True)])
    if library == "pyarrow":
        import pyarrow as pa

        arrays = [_arrow_array(*pair) for pair in zip(columns, values, strict=True)]
        return pa.table(arrays, names=[column.name for column in columns])
    return np.stack(values, axis=1)


def write_filled(frame: Any, columns: Sequence[Column], places: Sequence[int], filled: Array) -> Any:
    """The frame with the missing cells of the columns at these places filled, all else as it was."""
    names, library = frame_names(frame), library_of(frame)
    if library != "pandas":
        answer = write_frame([replace(c, name=names[i]) for c, i in zip(columns, places, strict=True)], filled, library)
        if library == "polars":
            return frame.with_columns(answer.get_columns())
        for i, column in zip(places, answer.columns, strict=True):
            frame = frame.set_column(i, names[i], column)
        return frame
    result = frame.copy()
    for i, (place, column) in enumerate(zip(places, columns, strict=True)):
        gone = result.iloc[:, place].isna()
        if gone.any():
            values = column.decode(np.asarray(filled[:, i], np.float64))[gone.to_numpy()]
            result.loc[gone, result.columns[place]] = values
    return result


def cell_frame(frame: Any, names: Sequence[str], values: Array) -> Any:
    """Numbers for every cell (n, C) under these names, where the rows came in a pandas or polars frame."""
    library = library_of(frame)
    if library == "pandas":
        import pandas as pd

        return pd.DataFrame(values, frame.index, list(names))
    if library == "polars":
        import polars as pl

        return pl.DataFrame({name: values[:, i] for i, name in enumerate(names)})
    return values


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
    import pyarrow as pa

    array = pa.array(values.tolist())
    if column.dtype.startswith("dictionary"):
        return array.dictionary_encode()
    try:
        return array.cast(pa.type_for_alias(column.dtype), safe=False)
    except (ValueError, KeyError):  # a type without a short name
        return array
