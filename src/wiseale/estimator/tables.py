"""Data frames and rows with missing cells: what the estimator learns from them, and how its answers look like them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from wiseale.data.dataset import Array
from wiseale.data.tables.blocks import gather
from wiseale.data.tables.columns import Selection, counted_names, list_ignored
from wiseale.data.tables.frames import frame_names, library_of, raw_blocks, select_all, write_frame
from wiseale.data.tables.kinds import AS_SAID, ROW_NUMBERS, choose_counts, parse_kinds
from wiseale.data.tables.mixed import encoded, learn_schema
from wiseale.data.tables.schema import Column, TableSchema, Unseen
from wiseale.errors import DataError
from wiseale.registry import did_you_mean

_SAID = 5  # columns that a message says kinds of


@dataclass(frozen=True)
class Cells:
    """What ``fit`` learns from, where X is a frame or has missing cells.

    Attributes:
        x: cells (n, C) of columns with kinds; None where X is numbers alone, which are learned as they are.
        schema: the columns that are learned from, and the types they had.
    """

    x: Array | None
    schema: TableSchema


def learn_cells(
    X: Any, column_kinds: Mapping[str, str] | str | None = None, missing: str = "learn", unseen: Unseen = "error"
) -> Cells:
    """The cells of a data frame."""
    library = library_of(X)
    chosen, read = select_all(X), partial(raw_blocks, X)
    asked = parse_kinds(column_kinds or {})
    learned = learn_schema(chosen, read, asked, "error" if missing == "error" else "learn", unseen)
    kept, schema = learned.chosen, learned.schema
    if schema is None:
        return Cells(None, replace(_of_numbers(kept, X, library), ignored=learned.ignored))
    x, _ = gather(kept, encoded(schema, kept, read), missing=True)
    return Cells(x, replace(choose_counts(schema, x), frame=library))


def _of_numbers(kept: Selection, X: Any, library: str) -> TableSchema:
    """The types of a frame of numbers."""
    (block,) = raw_blocks(X, kept)
    columns = []
    for i, raw in zip(kept.features, block.columns, strict=True):
        values = raw.values
        whole = bool((values == np.floor(values)).all()) and not raw.dtype.lower().startswith(("float", "double"))
        if raw.boolean:
            columns.append(Column(kept.names[i], "binary", (False, True), dtype=raw.dtype))
        else:
            columns.append(Column(kept.names[i], "number", whole=whole, dtype=raw.dtype))
    return TableSchema(tuple(columns), frame=library)


def ignored_message(schema: TableSchema) -> str:
    """Which columns are not learned from, why and what to do, in one line; empty where the user said so of all."""
    ignored = [(name, reason) for name, reason in schema.ignored if reason not in (AS_SAID, "a label")]
    if not ignored:
        return ""
    name, reason = ignored[0]
    as_it_is = reason not in ("dates", "durations")
    kind = "number" if reason.startswith(ROW_NUMBERS) else "category"
    keep = f"say {said_in_python({name: kind})}" if as_it_is else f'turn "{name}" into numbers'
    columns, one, them = ("column", "it", "it") if len(ignored) == 1 else ("columns", "one", "them")
    ignore = said_in_python({name: "ignore" for name, _ in ignored[:_SAID]}) + " …" * (len(ignored) > _SAID)
    return (
        f"{columns} not learned from: {list_ignored(ignored)}; to learn from {one}, {keep}; "
        f"to leave {them} out without this warning, say {ignore}"
    )


def said_in_python(kinds: Mapping[str, str]) -> str:
    """Columns and their kinds as an argument: ``column_kinds={"id": "ignore"}``."""
    return f"column_kinds={json.dumps(dict(kinds), ensure_ascii=False)}"


def pick(X: Any, names: tuple[str, ...]) -> Any:
    """The columns with these names, in this order."""
    if library_of(X) == "pandas":
        known = frame_names(X)
        return X.iloc[:, [known.index(name) for name in names]]  # a name may be a number: 3 is called "3"
    return X.select(list(names))


def has_names(schema: TableSchema) -> bool:
    """Whether columns are found by name: not where the model was fitted on an array, whose columns are 1, 2, …."""
    return bool(schema.frame) or schema.names != counted_names(len(schema.columns))


def _positions(X: Any, schema: TableSchema) -> tuple[int, ...]:
    """Where the columns that are learned from are in a frame."""
    names = frame_names(X)
    if not has_names(schema):
        return tuple(range(len(names)))
    for name in schema.names:
        if name not in names:
            raise DataError(f'X has no column "{name}", which the model learned from{did_you_mean(name, names)}')
    return tuple(names.index(name) for name in schema.names)


def read_cells(X: Any, schema: TableSchema, unseen: Unseen) -> Array:
    """The cells of a frame or matrix under a learned schema, (n, C)."""
    chosen = Selection("X", frame_names(X), _positions(X, schema), ()) if library_of(X) else select_all(X)
    x, _ = gather(chosen, encoded(schema, chosen, partial(raw_blocks, X), unseen), missing=True)
    if len(x) == 0:
        raise DataError("X has 0 sample(s): at least 1 is needed")
    return x


def write_cells(schema: TableSchema | None, x: Array, like: Any = None) -> Any:
    """Cells as the frame they were learned from; an array where there was none."""
    return x if schema is None else write_frame(schema, x, like)


def write_filled(X: Any, schema: TableSchema, filled: Array) -> Any:
    """X with its missing cells filled, all else as it was."""
    library = library_of(X)
    if not library:
        return write_frame(schema, filled)
    names, places = frame_names(X), _positions(X, schema)
    if library != "pandas":
        columns = tuple(replace(column, name=names[i]) for column, i in zip(schema.columns, places, strict=True))
        answer = write_frame(replace(schema, columns=columns, frame=library), filled)
        if library == "polars":
            return X.with_columns(answer.get_columns())
        table = X
        for i, column in zip(places, answer.columns, strict=True):
            table = table.set_column(i, names[i], column)
        return table
    result = X.copy()
    for i, (place, column) in enumerate(zip(places, schema.columns, strict=True)):
        gone = result.iloc[:, place].isna()
        if gone.any():
            values = column.decode(np.asarray(filled[:, i], np.float64))[gone.to_numpy()]
            result.loc[gone, result.columns[place]] = values
    return result


def cell_frame(X: Any, names: tuple[str, ...], values: Array) -> Any:
    """Numbers for every cell of X, under its columns' names where X is a pandas or polars frame."""
    library = library_of(X)
    names = names or (frame_names(X) if library else ())  # the model was fitted on an array
    if library == "pandas":
        import pandas as pd

        return pd.DataFrame(values, X.index, list(names))
    if library == "polars":
        import polars as pl

        return pl.DataFrame({name: values[:, i] for i, name in enumerate(names)})
    return values


def as_objects(x: Any) -> Array:
    """A matrix whose cells may be words, as Python objects."""
    x = np.asarray(x, object)
    if x.ndim != 2:
        raise DataError(f"X has the shape {x.shape}, but the model takes a table")
    return np.array([[None if isinstance(v, float) and math.isnan(v) else v for v in row] for row in x], object)
