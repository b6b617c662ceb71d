"""Tables with words, categories and missing cells: their schema is learned in one reading, their cells in another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from wiseale.data.tables.blocks import Block, RawBlock, place
from wiseale.data.tables.columns import Selection
from wiseale.data.tables.kinds import Asked, Facts, Ignored, decide, merge_rare
from wiseale.data.tables.schema import Column, TableSchema, Unseen
from wiseale.errors import DataError
from wiseale.registry import did_you_mean

Raw = Callable[[Selection], Iterator[RawBlock]]

_LINES_KEPT = 1 << 20  # rows whose line numbers are remembered for errors


def learn_schema(
    chosen: Selection,
    read: Raw,
    asked: Mapping[str, Asked],
    missing: Literal["learn", "error"] = "learn",
    unseen: Unseen = "error",
) -> tuple[Selection, TableSchema | None]:
    """The columns that are learned from and their schema; None where they are numbers alone and none is missing.

    Numbers alone are numbers because nothing else was asked for or found: such a table is learned as a plain matrix.
    """
    names = [chosen.names[i] or str(i + 1) for i in chosen.features]
    asked = _find(chosen.file, asked, names)
    facts = [Facts() for _ in chosen.features]
    lines: list[int] = []
    for block in read(chosen):
        for known, column in zip(facts, block.columns, strict=True):
            known.add(column)
        if len(lines) < _LINES_KEPT:
            lines.extend(block.lines)
    if facts[0].rows == 0:
        raise DataError(f"{chosen.file} has no rows: at least 2 are needed")

    def where(row: int) -> str:
        return place(chosen, row, lines[row] if row < len(lines) else None)

    plain = [i for i, name in enumerate(names) if asked.get(name) not in ("ignore", "label")]
    explicit = any(kind not in ("ignore", "label", "number") for kind in asked.values())
    if plain and not explicit and all(_is_plain(facts[i]) for i in plain):
        return replace(chosen, features=tuple(chosen.features[i] for i in plain)), None
    found = [decide(name, known, asked.get(name), where) for name, known in zip(names, facts, strict=True)]
    kept = [i for i, column in enumerate(found) if isinstance(column, Column)]
    ignored = tuple((column.name, column.reason) for column in found if isinstance(column, Ignored))
    if not kept:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in ignored)
        raise DataError(f"no column of {chosen.file} is left to learn from ({reasons}): say the kinds of some")
    if missing == "error":
        _refuse_missing([(names[i], facts[i]) for i in kept], where)
    columns = tuple(
        merge_rare(column, known) if unseen == "other" else column
        for column, known in zip(found, facts, strict=True)
        if isinstance(column, Column)
    )
    features = tuple(chosen.features[i] for i in kept)
    return replace(chosen, features=features), TableSchema(columns, ignored, unseen=unseen)


def _is_plain(facts: Facts) -> bool:
    """Whether a column holds a number in every row."""
    column = facts.column
    return column is not None and column.categories is None and not column.holds and facts.numbers == facts.rows


def encoded(schema: TableSchema, chosen: Selection, read: Raw, unseen: Unseen = "error") -> Iterator[Block]:
    """The cells of the chosen columns as numbers, block by block."""
    start = 0
    for raw in read(chosen):
        yield encode_block(schema, chosen, raw, unseen, start)
        start += len(raw)


def encode_block(
    schema: TableSchema, chosen: Selection, raw: RawBlock, unseen: Unseen = "error", start: int = 0
) -> Block:
    """The cells of a block as numbers; its first row is called ``start`` in errors."""

    def where(i: int) -> str:
        return place(chosen, start + i, raw.lines[i] if raw.lines else None)

    values = np.empty((len(raw), len(schema.columns)))
    for i, (column, cells) in enumerate(zip(schema.columns, raw.columns, strict=True)):
        values[:, i] = column.encode(cells, where, unseen)
    return Block(values, raw.labels, raw.lines)


def _find(file: str, asked: Mapping[str, Asked], names: list[str]) -> dict[str, Asked]:
    """Kinds by the columns' names; a column may also be called by its number from 1."""
    found: dict[str, Asked] = {}
    for name, kind in asked.items():
        if name in names:
            found[name] = kind
        elif name.isdecimal() and 1 <= int(name) <= len(names):
            found[names[int(name) - 1]] = kind
        else:
            raise DataError(f'{file} has no column "{name}" to be {kind}{did_you_mean(name, names)}')
    return found


def _refuse_missing(columns: list[tuple[str, Facts]], where: Callable[[int], str]) -> None:
    first = [(facts.first_missing, name) for name, facts in columns if facts.first_missing is not None]
    if first:
        row, name = min(first)
        raise DataError(f'{where(row)} has a missing cell in column "{name}": fill or drop it, or say missing=learn')
