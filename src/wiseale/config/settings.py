"""A setting is declared once, as a dataclass field; its type, range and help serve command line, files and Python."""

from __future__ import annotations

import dataclasses
import math
import operator
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeVar

from wiseale import registry
from wiseale.errors import ConfigError

S = TypeVar("S", bound="Settings")

Role = Literal["science", "machine", "output"]
"""What a setting is for: it decides the result, says where and how that is computed, or what is written of it."""


class SettingError(ConfigError):
    """One setting is wrong; callers may put the spelling their user knows in front (``--latent-dim``)."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")
        self.name = name
        self.problem = problem

    def __reduce__(self) -> tuple[type[SettingError], tuple[str, str]]:
        return type(self), (self.name, self.problem)


_LIMITS: dict[str, tuple[Callable[[float, float], bool], str]] = {
    "minimum": (operator.ge, "at least"),
    "maximum": (operator.le, "at most"),
    "above": (operator.gt, "above"),
    "below": (operator.lt, "below"),
}


def setting(
    default: Any,
    help: str = "",
    *,
    role: Role | None = None,
    given: bool = False,
    kind: str | None = None,
    **limits: float,
) -> Any:
    """A field with help and a range: ``minimum`` and ``maximum`` are allowed, ``above`` and ``below`` are not.

    ``role`` says what it is for; a part of a spec has none of its own, but that of the setting that holds the spec.
    ``given`` is for what belongs to the question and not to the answer (data, held-out rows, seed): it is never
    searched. ``kind`` is the registered kind whose spec it holds (``"objective"``).
    """
    return field(default=default, metadata={"help": help, "limits": limits, "role": role, "given": given, "kind": kind})


@cache
def _type_hints(cls: Any) -> dict[str, Any]:
    """The annotations of a class, evaluated once."""
    return typing.get_type_hints(cls)


@dataclass(frozen=True)
class Settings:
    """Base of every dataclass of settings: values are checked against their declared type and range when it is made."""

    def __post_init__(self) -> None:
        hints = _type_hints(type(self))  # type: ignore[arg-type]  # mypy takes the hash of instances for that of the class
        for item in dataclasses.fields(self):
            value = convert(item.name, getattr(self, item.name), hints[item.name])
            _check_range(item.name, value, item.metadata.get("limits", {}))
            object.__setattr__(self, item.name, value)


def from_values(cls: type[S], values: Mapping[str, Any]) -> S:
    """Make settings from a mapping of strings or typed values; an unknown key is an error naming the nearest."""
    names = [item.name for item in dataclasses.fields(cls)]
    for key in values:
        if key not in names:
            near = registry.did_you_mean(key, names)
            raise SettingError(key, f"is not a setting of {cls.__name__}{near} (known: {', '.join(names)})")
    return cls(**values)


def _check_range(name: str, value: Any, limits: Mapping[str, float]) -> None:
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, bool) or not isinstance(number, int | float):
            continue
        if isinstance(number, float) and not math.isfinite(number):
            raise SettingError(name, f"must be finite, got {number}")
        if isinstance(number, int) and abs(number) >= _MAX_NUMBER:
            raise SettingError(name, f"is too large: at most {_MAX_NUMBER - 1} can be computed with")
        for key, limit in limits.items():
            holds, words = _LIMITS[key]
            if not holds(number, limit):
                raise SettingError(name, f"must be {words} {limit}, got {number}")


def convert(name: str, value: Any, hint: Any) -> Any:
    """Read a value as the annotated type: numbers may be strings (``"1/64"`` too), tuples are comma-separated."""
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    for option in sorted(options, key=lambda option: option is not type(None)):
        if (result := _read(value, option)) is not _NOT_READ:
            return result
    text = repr(value)
    text = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    raise SettingError(name, f"must be {' or '.join(map(_describe, options))}, got {text}")


_NOT_READ = object()
_MAX_NUMBER = 1 << 63
_LONGEST_SHOWN = 200  # characters of a wrong value


def _read(value: Any, hint: Any) -> Any:
    if hint is type(None):
        return None if value is None or value == "none" else _NOT_READ
    if typing.get_origin(hint) is Literal:
        return value if value in typing.get_args(hint) and isinstance(value, str) else _NOT_READ
    if typing.get_origin(hint) is tuple:
        words = [unquote(word) for word in split_items(value)] if isinstance(value, str) else value
        items = words if isinstance(words, list | tuple) else [words]
        results = tuple(_read(item, typing.get_args(hint)[0]) for item in items)
        return _NOT_READ if _NOT_READ in results else results
    if hint is bool and isinstance(value, str):
        return {"true": True, "false": False}.get(value, _NOT_READ)
    if hint in (bool, str):
        return value if isinstance(value, hint) else _NOT_READ
    if hint in (int, float):
        return _read_number(value, hint)
    raise TypeError(f"settings cannot have the type {hint}")


def _read_number(value: Any, kind: type[int] | type[float]) -> Any:
    if isinstance(value, bool):
        return _NOT_READ
    if isinstance(value, str):
        try:
            if kind is float and value.count("/") == 1:
                above, below = value.split("/")
                return float(above) / float(below)
            return kind(value)
        except (ValueError, ZeroDivisionError):
            return _NOT_READ
    if hasattr(value, "__index__"):
        try:
            return kind(value.__index__())
        except OverflowError:
            return _NOT_READ
    return float(value) if kind is float and hasattr(value, "__float__") else _NOT_READ


def _describe(hint: Any) -> str:
    if typing.get_origin(hint) is Literal:
        return " or ".join(repr(word) for word in typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        return f"numbers separated by commas ({_describe(typing.get_args(hint)[0])} each)"
    return {type(None): "none", bool: "true or false", int: "a whole number", float: "a number", str: "text"}[hint]


def split_items(text: str, separator: str = ",") -> list[str]:
    """The text cut at separators outside double quotes; at all of them where a quote is not closed.

    >>> split_items('"bill,len":number,id:ignore')
    ['"bill,len":number', 'id:ignore']
    """
    items, quoted = [""], False
    for letter in text:
        quoted ^= letter == '"'
        if letter == separator and not quoted:
            items.append("")
        else:
            items[-1] += letter
    return text.split(separator) if quoted else items


def quote(text: str) -> str:
    """Text in double quotes, as CSV files write it."""
    return '"' + text.replace('"', '""') + '"'


def unquote(text: str) -> str:
    """Text without the double quotes around it, if it has any.

    >>> unquote('"bill,len"'), unquote("mass")
    ('bill,len', 'mass')
    """
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1].replace('""', '"') if quoted else text
