"""Spaces of columns of given kinds."""

from wiseale.spaces import Column, MixedSpace


def mixed_space(kinds):
    """Columns called 1, 2, … of kinds such as ``"number,category:3,binary"``, levels called a, b, …."""
    columns = []
    for i, item in enumerate(kinds.split(",")):
        kind, _, count = item.partition(":")
        levels = tuple("abcdefgh"[: int(count or 2)]) if kind in ("category", "binary") else ()
        columns.append(Column(str(i + 1), kind, levels))
    return MixedSpace.of(columns)
