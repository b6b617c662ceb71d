"""What one row is, known in one room: numbers, mixed columns, signals and images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wiseale.platform.json_files import record
from wiseale.spaces.columns import Column, ColumnEntry
from wiseale.spaces.space import ImagesSpace, Reading, Scaling, SignalsSpace, Space
from wiseale.spaces.tables import MixedSpace, NumbersSpace, TableSpace

__all__ = [
    "SPACES",
    "Column",
    "ColumnEntry",
    "ImagesSpace",
    "MixedSpace",
    "NumbersSpace",
    "Reading",
    "Scaling",
    "SignalsSpace",
    "Space",
    "TableSpace",
    "plain_space",
    "read_space",
]

SPACES: Mapping[str, type[Space]] = {cls.kind: cls for cls in (NumbersSpace, MixedSpace, SignalsSpace, ImagesSpace)}
"""Every kind of rows, by the name that model files give it."""


def plain_space(x_shape: tuple[int, ...], reading: Reading = "values", scaling: Scaling = "none") -> Space:
    """The space of rows of numbers that are all observed: a vector's, a signal's or an image's.

    >>> plain_space((1, 28, 28), "unit").describe()
    'images of 1 channel, 28 by 28 pixels'
    """
    kinds: tuple[type[Space], ...] = (NumbersSpace, SignalsSpace, ImagesSpace)
    return kinds[len(x_shape) - 1](x_shape, reading, scaling)


def read_space(values: Any) -> Space:
    """A space from what JSON held; ValueError where that is none."""
    kind = values.get("kind") if isinstance(values, dict) else None
    if not isinstance(kind, str) or kind not in SPACES:
        raise ValueError(f"{str(kind)[:40]!r} is no kind of rows: {', '.join(SPACES)}")
    space = record(SPACES[kind], {key: value for key, value in values.items() if key != "kind"})
    space.check()
    return space
