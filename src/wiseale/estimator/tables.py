"""Data frames and rows with missing cells: what the estimator learns from them, and what it says of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wiseale.data.dataset import Array
from wiseale.data.tables.blocks import Selection, gather
from wiseale.data.tables.frames import raw_blocks, select_all
from wiseale.data.tables.kinds import AS_SAID, ROW_NUMBERS, parse_kinds
from wiseale.data.tables.mixed import encoded, learn_space, read_mixed
from wiseale.errors import DataError
from wiseale.registry import did_you_mean
from wiseale.spaces import Column, NumbersSpace, TableSpace
from wiseale.spaces.columns import Unseen, list_ignored
from wiseale.spaces.frames import frame_names, library_of

_SAID = 5  # columns that a message says kinds of


def learn_frame(
    X: Any, column_kinds: Mapping[str, str] | str | None = None, missing: str = "learn", unseen: Unseen = "error"
) -> tuple[TableSpace, Array | None]:
    """The space of a data frame's rows, and their cells; None for numbers alone, which are learned as they are."""
    library = library_of(X)
    kinds = parse_kinds(column_kinds or {})
    learned = learn_space(
        select_all(X), partial(raw_blocks, X), kinds, "error" if missing == "error" else "learn", unseen
    )
    if learned.space is None:
        columns = _columns_of_numbers(learned.chosen, X)
        return NumbersSpace((len(columns),), columns=columns, ignored=learned.ignored, frame=library), None
    space, x, _ = read_mixed(learned, partial(raw_blocks, X))
    return replace(space, frame=library), x


def _columns_of_numbers(selection: Selection, X: Any) -> tuple[Column, ...]:
    """The columns of a frame of numbers, with their types."""
    (block,) = raw_blocks(X, selection)
    columns = []
    for i, raw in zip(selection.features, block.columns, strict=True):
        values = raw.values
        whole = bool((values == np.floor(values)).all()) and not raw.dtype.lower().startswith(("float", "double"))
        if raw.boolean:
            columns.append(Column(selection.names[i], "binary", (False, True), dtype=raw.dtype))
        else:
            columns.append(Column(selection.names[i], "number", whole=whole, dtype=raw.dtype))
    return tuple(columns)


def ignored_message(ignored: tuple[tuple[str, str], ...]) -> str:
    """Which columns are not learned from, why and what to do, in one line; empty where the user said so of all."""
    ignored = tuple((name, reason) for name, reason in ignored if reason not in (AS_SAID, "a label"))
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


def positions(X: Any, space: TableSpace) -> tuple[int, ...]:
    """Where the columns that are learned from are in a frame."""
    names = frame_names(X)
    if not space.named:
        return tuple(range(len(names)))
    for name in space.names:
        if name not in names:
            raise DataError(f'X has no column "{name}", which the model learned from{did_you_mean(name, names)}')
    return tuple(names.index(name) for name in space.names)


def read_cells(X: Any, space: TableSpace, unseen: Unseen) -> Array:
    """The cells of a frame or matrix as rows of a space, (n, C)."""
    selection = Selection("X", frame_names(X), positions(X, space), ()) if library_of(X) else select_all(X)
    x, _ = gather(selection, encoded(space, selection, partial(raw_blocks, X), unseen))
    if len(x) == 0:
        raise DataError("X has 0 sample(s): at least 1 is needed")
    return x


def as_objects(x: Any) -> Array:
    """A matrix whose cells may be words, as Python objects."""
    x = np.asarray(x, object)
    if x.ndim != 2:
        raise DataError(f"X has the shape {x.shape}, but the model takes a table")
    return np.array([[None if isinstance(v, float) and math.isnan(v) else v for v in row] for row in x], object)
