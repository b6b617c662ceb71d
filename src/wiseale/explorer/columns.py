"""A table's columns as the page shows them, and its rows as entries: one number per column, or per level of a category.

What is decoded and what was observed have the same form: the mean of a number, the rate of a count, the probability of
a binary column's second level, the probability of every level of a category. Of an observed row probabilities are 0 or
1; entries of a missing cell are NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from wiseale.spaces import Space, TableSpace


@dataclass(frozen=True)
class ShownColumn:
    """One column of a table.

    Attributes:
        levels: names of the levels of a binary column or a category.
        whole: whether its numbers are whole, and are shown rounded.
        start: its first entry.
        width: how many entries it has.
    """

    name: str
    kind: Literal["number", "binary", "category", "count"] = "number"
    levels: tuple[str, ...] = ()
    whole: bool = False
    start: int = 0
    width: int = 1


def shown_columns(space: Space, names: Sequence[str] = ()) -> tuple[ShownColumn, ...]:
    """The columns of a table, none for signals and images; ``names`` are of columns that have none in the space."""
    if not isinstance(space, TableSpace):
        return ()
    names = space.names or names or [f"x{i}" for i in range(space.x_shape[0])]
    return tuple(
        ShownColumn(
            name,
            "count" if column.is_count else column.kind,  # type: ignore[arg-type]
            tuple(str(level) for level in column.levels),
            space.missing and (column.whole or column.is_count),
            start,
            column.width,
        )
        for name, column, start in zip(names, space.learned, space.starts, strict=True)
    )
