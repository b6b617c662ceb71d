"""Which columns of a table are features and which are labels, by name or by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from wiseale.errors import DataError
from wiseale.registry import did_you_mean

_LISTED = 20  # names an error shows
_LONGEST = 60  # characters it shows of each


@dataclass(frozen=True)
class Selection:
    """Columns of a file: all their names, and the positions of the features and of the labels, counted from 0.

    Attributes:
        said: whether the user named the features; row numbers among them are then meant.
        unnamed: position of a column that has no name while others do: it is left out if it numbers the rows, as the
            index that pandas writes does, and refused otherwise.
        line_of: the line of a row of data, counted from 0, in a file of text; None for other tables.
    """

    file: str
    names: tuple[str, ...]
    features: tuple[int, ...]
    labels: tuple[int, ...]
    said: bool = False
    unnamed: int | None = None
    line_of: Callable[[int], int | None] | None = field(default=None, compare=False)

    def called(self, columns: Iterable[int]) -> str:
        """Columns as a sentence names them: ``"price", "qty"``, or ``3`` where there is no name."""
        return ", ".join(_quoted(self.names[i]) if self.names[i] else str(i + 1) for i in columns)

    def spelled(self, columns: Iterable[int]) -> str:
        """Columns as a setting takes them: ``price,qty``; by number where a name would be misread."""
        safe = (
            self.names[i] if self.names[i] and not set(self.names[i]) & set(",=\n\r") else str(i + 1) for i in columns
        )
        return ",".join(safe)


def select(
    file: str,
    names: Sequence[str],
    columns: Sequence[str],
    drop: Sequence[str],
    labels: Sequence[str],
    *,
    row_numbers: bool = False,
    line_of: Callable[[int], int | None] | None = None,
) -> Selection:
    """Find the columns asked for; without any, all that are neither dropped nor labels are features.

    A column without a name must be asked for; with ``row_numbers`` the first may be among the features, as ``unnamed``.
    """
    names = tuple(names)
    for name, times in Counter(names).items():
        if name and times > 1:
            numbers = " and ".join(str(i + 1) for i, other in enumerate(names) if other == name)
            raise DataError(f"{file} has several columns named {_quoted(name)} (columns {numbers}): rename them")
    wanted, left_out, factors = (
        tuple(_position(file, names, name) for name in given) for given in (columns, drop, labels)
    )
    features = wanted or tuple(i for i in range(len(names)) if i not in factors)
    features = tuple(dict.fromkeys(i for i in features if i not in left_out))
    selection = Selection(file, names, features, factors, said=bool(wanted), line_of=line_of)
    if not features:
        raise DataError(f"no column of {file} is left to learn from: {_listed(names)}")
    unnamed = [i for i in features if not names[i]]
    if unnamed and not wanted:
        if not row_numbers or unnamed != [0]:
            raise no_name(selection, unnamed[0])
        return replace(selection, unnamed=0)
    return selection


def no_name(chosen: Selection, column: int) -> DataError:
    """The error about a column without a name."""
    number, file = column + 1, chosen.file
    return DataError(
        f"column {number} of {file} has no name, and may be a row number: "
        f"leave it out with {file}:drop={number}, or choose the others with {file}:columns=…"
    )


def _position(file: str, names: tuple[str, ...], name: str) -> int:
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
