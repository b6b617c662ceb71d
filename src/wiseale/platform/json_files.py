"""The one reader of JSON: files may be damaged or come from strangers, so size, depth and types are checked."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import math
import os
import stat
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

MAX_BYTES = 64 << 20
"""Size of the largest JSON file that is read; the largest that wiseale writes are some MB of a long run's metrics."""

_SEAL = "sha256"
_MAX_INT = 1 << 63


def to_json(value: Any) -> str:
    """Readable JSON; NaN and infinity are refused, because other readers refuse them too."""
    return json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def require_regular(path: Path) -> None:
    """OSError for what is not a regular file: opening a pipe would block."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_text(path: Path, max_bytes: int = MAX_BYTES) -> str:
    """The text of a file; OSError for what is not a regular file (a pipe would block), ValueError for too much text."""
    require_regular(path)
    with path.open("rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"it is larger than {max_bytes >> 20} MB")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None


def parse_json(text: str) -> Any:
    """The value in JSON text; ValueError says what is wrong with it.

    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
        ...
    ValueError: it is nested too deeply
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def parse_table(text: str) -> dict[str, Any]:
    """The table (JSON object) in a text."""
    values = parse_json(text)
    if not isinstance(values, dict):
        raise ValueError("it must hold a table")
    return values


def record(kind: type[T], values: Any) -> T:
    """A dataclass from a table with its fields; ValueError for a missing or unknown key or a value of another type.

    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: float
    >>> record(Point, {"x": True})
    Traceback (most recent call last):
        ...
    ValueError: x is True, which is not float
    """
    if not isinstance(values, dict):
        raise ValueError("it must hold a table")
    hints, fields = get_type_hints(kind), dataclasses.fields(kind)  # type: ignore[arg-type]
    for key in values:
        if key not in hints:
            raise ValueError(f"{key[:40]!r} is not one of its keys")
    for item in fields:
        required = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
        if required and item.name not in values:
            raise ValueError(f"{item.name} is missing")
    return kind(**{key: _typed(value, hints[key], key) for key, value in values.items()})


def sealed(values: Mapping[str, Any]) -> str:
    """Readable JSON with a checksum of its content as the last key, so that :func:`unseal` notices any change."""
    return to_json({**values, _SEAL: _digest(values)})


def unseal(values: dict[str, Any]) -> dict[str, Any]:
    """The table without its checksum, which must be there and right."""
    inside = {key: value for key, value in values.items() if key != _SEAL}
    if values.get(_SEAL) != _digest(inside):
        raise ValueError("its content is not that of its checksum: it is damaged or was edited")
    return inside


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _refuse_constant(name: str) -> None:
    raise ValueError(f"it holds {name}, which is not JSON")


def _typed(value: Any, hint: Any, name: str) -> Any:
    """The value, if it is of the annotated type; lists become tuples where the annotation says so."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        for option in inner:
            with suppress(ValueError):
                return _typed(value, option, name)
    elif origin is Literal:
        if isinstance(value, str) and value in inner:
            return value
        raise ValueError(f"{name} is {repr(value)[:40]}, which is none of {', '.join(inner)}")
    elif origin in (dict, Mapping):
        if isinstance(value, dict):
            return {key: _typed(item, inner[1], f"{name}.{key[:40]}") for key, item in value.items()}
    elif origin in (list, tuple, Sequence):
        if isinstance(value, list):
            items = [_typed(item, inner[0], name) for item in value]
            return items if origin is list else tuple(items)
    elif dataclasses.is_dataclass(hint):
        if isinstance(value, hint):  # type: ignore[arg-type]
            return value  # read already
        if isinstance(value, dict):
            return record(hint, value)  # type: ignore[arg-type]
    elif _is_plain(value, hint):
        return value
    raise ValueError(f"{name} is {repr(value)[:40]}, which is not {getattr(hint, '__name__', hint)}")


def _is_plain(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if type(value) is int and hint in (int, float):
        return -_MAX_INT < value < _MAX_INT
    if hint is float:
        return type(value) is float and math.isfinite(value)
    if hint is str:
        return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)
    return type(value) is hint
