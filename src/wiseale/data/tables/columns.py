"""Which columns of a table are features and which are labels, by name or by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wiseale.errors import DataError
from wiseale.registry import did_you_mean

_LISTED = 20  # names an error shows
_LONGEST = 60  # characters it shows of each


@dataclass(frozen=True)
class Selection:
    """Columns of a file: all their names, and the positions of the features and of the labels, counted from 0."""

    file: str
    names: tuple[str, ...]
    features: tuple[int, ...]
    labels: tuple[int, ...]

    def called(self, columns: Iterable[int]) -> str:
        """Columns as a sentence names them: ``"price", "qty"``, or ``3`` where there is no name."""
        return ", ".join(_quoted(self.names[i]) if self.names[i] else str(i + 1) for i in columns)

    def spelled(self, columns: Iterable[int]) -> str:
        """Columns as a setting takes them: ``price,qty``; by number where a name would be misread."""
        safe = (
            self.names[i] if self.names[i] and not set(self.names[i]) & set(",=\n\r") else str(i + 1) for i in columns
        )
        return ",".join(safe)


def counted_names(count: int) -> tuple[str, ...]:
    """The names of columns that have none of their own.

    >>> counted_names(3)
    ('1', '2', '3')
    """
    return tuple(str(i + 1) for i in range(count))


def select(
    file: str, names: Sequence[str], columns: Sequence[str], drop: Sequence[str], labels: Sequence[str]
) -> Selection:
    """Find the columns asked for; without any, all that are neither dropped nor labels are features."""
    names = tuple(names)
    for name, times in Counter(names).items():
        if name and times > 1:
            numbers = " and ".join(str(i + 1) for i, other in enumerate(names) if other == name)
            raise DataError(f"{file} has several columns named {_quoted(name)} (columns {numbers}): rename them")
    wanted, dropped, coloured = (tuple(_find(file, names, name) for name in given) for given in (columns, drop, labels))
    features = wanted or tuple(i for i in range(len(names)) if i not in coloured)
    chosen = Selection(file, names, tuple(dict.fromkeys(i for i in features if i not in dropped)), coloured)
    if not chosen.features:
        raise DataError(f"no column of {file} is left to learn from: {_listed(names)}")
    unnamed = [i for i in chosen.features if not names[i]]
    if unnamed and not wanted:
        raise DataError(
            f"column {unnamed[0] + 1} of {file} has no name, and may be a row number: "
            f"leave it out with drop={unnamed[0] + 1}, or choose with columns="
        )
    return chosen


def _find(file: str, names: tuple[str, ...], name: str) -> int:
    if name in names:
        return names.index(name)
    if name.isdecimal() and 1 <= int(name) <= len(names):
        return int(name) - 1
    raise DataError(f'{file} has no column "{name}"{did_you_mean(name, names)} ({_listed(names)})')


def _listed(names: tuple[str, ...]) -> str:
    known = ", ".join(_quoted(name) for name in names[:_LISTED] if name)
    return f"it has {known}{', …' if len(names) > _LISTED else ''}"


def _quoted(name: str) -> str:
    """A name on one line, cut where it is long."""
    shown = " ".join(name.split())
    return f'"{shown}"' if len(shown) <= _LONGEST else f'"{shown[:_LONGEST]}…"'
