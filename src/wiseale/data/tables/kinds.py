"""Which kind each column of a table is: said by the user, or decided from its type and what it holds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from wiseale.config import split_items, unquote
from wiseale.data.dataset import Array
from wiseale.data.tables.raw import RawColumn, as_word
from wiseale.errors import ConfigError, DataError, counted
from wiseale.spaces import Column, MixedSpace
from wiseale.spaces.columns import MOST_LEVELS, KindError, Level

Asked = Literal["number", "binary", "category", "count", "label", "ignore"]
"""Kinds a user can ask for; whether a count is Poisson or negative binomial is decided from the data."""

_LIKELY_LEVELS = 256  # words with more levels are not taken for a category unless the user says so
_SURE_LEVELS = 20  # with at most this many they are, however few rows there are
_RARE = 5  # rows: levels seen in fewer are learned together as "other", where that is asked for
_HIGHEST_COUNT = 1_000
_ROW_NAMES = {"#", "id", "ids", "idx", "index", "key", "no", "nr", "row", "rows", "rowid", "rownames", "rownum"}

ROW_NUMBERS, AS_SAID = "row numbers", "as you said"
"""Reasons why a column is not learned from."""

_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
    rf"|{_MONTH} \d{{1,2}},? \d{{2,4}}|\d{{1,2}}[- ]{_MONTH}[- ]\d{{2,4}}",
    re.IGNORECASE,
)


def parse_kinds(text: str | Mapping[str, str]) -> dict[str, Asked]:
    """``price:number,colour:category`` as a mapping; a mapping is checked alike.

    Names that hold a comma are in double quotes: ``"bill,len":number``.

    >>> parse_kinds("price:number,colour:category")
    {'price': 'number', 'colour': 'category'}
    """
    if not isinstance(text, str):
        pairs = [(str(name), str(kind)) for name, kind in text.items()]
    else:
        pairs = []
        for item in (item for item in split_items(text) if item.strip()):
            name, colon, kind = item.rpartition(":")
            name = unquote(name.strip())
            if not colon or not name or kind.endswith('"'):
                raise ConfigError(
                    f"column kinds must be of the form price:number,colour:category, got {item.strip()!r}; "
                    'a name with a comma is written in double quotes, "bill,len":number'
                )
            pairs.append((name, kind.strip()))
    for name, kind in pairs:
        if kind not in get_args(Asked):
            raise ConfigError(f'column "{name}" cannot be {kind!r}: the kinds are {", ".join(get_args(Asked))}')
    return dict(pairs)  # type: ignore[arg-type]


@dataclass
class Facts:
    """What a column holds, gathered block by block."""

    rows: int = 0
    numbers: int = 0
    words: int = 0
    whole: bool = True
    low: float = math.inf
    high: float = -math.inf
    total: float = 0.0
    counting: bool = True  # 1, 2, 3, … from any start
    first_word: tuple[int, str] | None = None
    first_missing: int | None = None
    column: RawColumn | None = None
    _last: float = math.nan
    _written: dict[str, int] = field(default_factory=dict)
    _as_numbers: dict[str, int] = field(default_factory=dict)

    def add(self, column: RawColumn) -> None:
        """Look at the next cells."""
        self.column = self.column or replace(column, values=column.values[:0])
        values, wrong = column.as_numbers()
        missing = column.missing()
        if self.first_missing is None and missing.any():
            self.first_missing = self.rows + int(np.argmax(missing))
        if wrong is not None and self.first_word is None:
            self.first_word = (self.rows + wrong, column.shown(wrong))
        present = values[~np.isnan(values)]
        self.numbers += len(present)
        self.words += int((~missing).sum()) - len(present)
        if len(present):
            self.whole &= bool((present == np.floor(present)).all())
            self.low, self.high = min(self.low, float(present.min())), max(self.high, float(present.max()))
            self.total += float(present.sum())
            with np.errstate(invalid="ignore"):  # infinite cells are refused later
                steps = np.diff(np.concatenate([[self._last] if self.rows else [], values]))
            self.counting &= bool((steps == 1).all())
            self._last = float(values[-1])
        self.rows += len(column)
        if not column.is_numeric and len(self._written) <= MOST_LEVELS:
            for word, count in islice(column.word_counts().items(), MOST_LEVELS + 1):
                self._written[word] = self._written.get(word, 0) + count
        if not self.words and len(self._as_numbers) <= MOST_LEVELS:
            _count(self._as_numbers, map(as_word, np.unique(present)[: MOST_LEVELS + 1].tolist()))

    @property
    def levels(self) -> dict[str, int]:
        """Different values as text, at most one more than ``MOST_LEVELS``; numbers as they were written beside words.

        Of a column with words, also in how many rows each was.
        """
        return self._written if self.words else self._as_numbers

    @property
    def counts(self) -> bool:
        """Whether every row has a whole number, one more than the row before."""
        return self.whole and self.counting and self.numbers == self.rows

    @property
    def observed(self) -> int:
        """Cells that are not missing."""
        return self.numbers + self.words


def _count(found: dict[str, int], values: Iterable[str | None]) -> None:
    for value in values:
        if value is not None:
            found[value] = found.get(value, 0) + 1
            if len(found) > MOST_LEVELS:
                return


@dataclass(frozen=True)
class Ignored:
    """A column that is not learned from, and why."""

    name: str
    reason: str


def are_row_numbers(name: str, low: float, rows: int) -> bool:
    """Whether whole numbers that grow by 1 from each row to the next, from ``low`` on, number the rows.

    They do if they start at 0 or 1, or if the column is called so: years from 1700 on are no row numbers. A few rows
    may count up by chance, and a column that has a number for a name is somebody's choice.

    >>> are_row_numbers("customer_id", 1000, 300), are_row_numbers("year", 1700, 300)
    (True, False)
    """
    if name.isdecimal() or rows <= _SURE_LEVELS:
        return False
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|#", name)
    return low in (0, 1) or any(word.lower() in _ROW_NAMES for word in words)


def decide(
    name: str, facts: Facts, asked: Asked | None, where: Callable[[int], str], *, row_numbers: str = ""
) -> Column | Ignored:
    """The kind of a column; ``where(row)`` names a row in errors, ``row_numbers`` says so of a column that has them."""
    column = facts.column
    assert column is not None
    if asked in ("ignore", "label"):
        return Ignored(name, AS_SAID if asked == "ignore" else "a label")
    if column.holds == "nested values":
        raise KindError(f'column "{name}" holds nested values ({column.dtype})', "say {ignore}, or flatten it", name)
    if column.holds:
        if asked is not None:
            advice = f"turn them into {'seconds' if column.holds == 'durations' else 'numbers'}, or say {{ignore}}"
            raise KindError(f'column "{name}" holds {column.holds}, not a {asked}', advice, name)
        return Ignored(name, column.holds)
    if facts.observed == 0:
        raise KindError(f'column "{name}" is empty, all {facts.rows:,} cells are missing', "say {ignore}", name)
    made = Column(name, "number", whole=facts.numbers > 0 and facts.whole, dtype=column.dtype, ordered=column.ordered)
    if asked in ("number", "count"):
        return _as_number(made, facts, asked, where)
    if asked in ("binary", "category"):
        return _as_levels(made, facts, asked)
    if column.categories is not None:
        return _as_levels(made, facts, "binary" if len(column.categories) == 2 else "category")
    if facts.words:
        return _from_words(made, facts, where)
    if row_numbers:
        return Ignored(name, row_numbers)
    if column.boolean or set(facts.levels) == {"0", "1"}:
        return _as_levels(made, facts, "binary")
    if _looks_counted(facts):
        return replace(made, kind="poisson")
    return made


def _looks_counted(facts: Facts) -> bool:
    """Whole numbers from 0 on, few of them large."""
    mean = facts.total / facts.numbers
    return facts.whole and facts.low == 0 and 3 <= facts.high <= _HIGHEST_COUNT and mean < facts.high / 3


def _as_number(made: Column, facts: Facts, asked: Asked, where: Callable[[int], str]) -> Column:
    if facts.first_word is not None:
        row, cell = facts.first_word
        assert facts.column is not None
        form = facts.column.form
        advice = form.advice(facts.levels) if form else ""
        raise DataError(f'{where(row)} has {cell} in column "{made.name}", not a {asked}{advice and f": {advice}"}')
    if asked == "count" and not (facts.whole and facts.low >= 0):
        problem = f'column "{made.name}" holds numbers from {facts.low:g} that are no counts'
        raise KindError(problem, "say {number}", made.name)
    return replace(made, kind="poisson" if asked == "count" else "number")


def _as_levels(made: Column, facts: Facts, asked: Asked) -> Column:
    column = facts.column
    assert column is not None
    levels: tuple[Level, ...]
    if column.boolean:
        levels = (False, True)
    elif column.categories is not None:
        levels = tuple(value if isinstance(value, str) else as_word(value) for value in column.categories)
        if not facts.words:
            levels = tuple(_level(value) for value in column.categories)
    elif facts.words:
        levels = tuple(sorted(facts.levels))
    else:
        levels = tuple(sorted(_level(float(value)) for value in facts.levels))
    if len(levels) > MOST_LEVELS:
        problem = f'column "{made.name}" has more than {MOST_LEVELS:,} levels'
        raise KindError(problem, "say {ignore}, or merge levels", made.name)
    if asked == "binary" and len(levels) != 2:
        problem = f'column "{made.name}" has {counted(len(levels), "level")}, and binary needs 2'
        raise KindError(problem, "say {category}", made.name)
    return replace(made, kind="binary" if asked == "binary" else "category", levels=levels, whole=False)


def merge_rare(column: Column, facts: Facts) -> Column:
    """The column with the words seen in fewer than 5 rows as one level "other", if at least two levels are left."""
    counts = {level: facts.levels.get(level, 0) for level in column.levels if isinstance(level, str)}
    if column.kind != "category" or len(counts) < len(column.levels):
        return column
    other = next((level for level in counts if level.lower() == "other"), "other")
    kept = [level for level, count in counts.items() if count >= _RARE and level != other]
    rare = len(kept) + (other in counts) < len(counts)
    if len(kept) < 2 or not (rare or other in counts):
        return column
    return replace(column, levels=(*kept, other), other=other)


def _level(value: Any) -> Level:
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _from_words(made: Column, facts: Facts, where: Callable[[int], str]) -> Column | Ignored:
    name, count = made.name, len(facts.levels)
    assert facts.first_word is not None
    row, cell = facts.first_word
    if any("\n" in level for level in facts.levels):
        raise DataError(f'{where(row)} has a line break in column "{name}": a quote before it may not be closed')
    form = facts.column.form if facts.column is not None else None
    if form is not None and (advice := form.advice(facts.levels).replace("{", "{{").replace("}", "}}")):
        odd = repr(next(level for level in facts.levels if form.advice([level])))
        problem = f'{where(row) if odd == cell else form.file} has {odd} in column "{name}"'
        raise KindError(problem, f"{advice}, or say {{category}} or {{ignore}}", name)
    if form is None and (commas := [level for level in facts.levels if re.fullmatch(r"[-+]?\d+,\d+", level)]):
        raise DataError(f'{where(row)} has {commas[0]!r} in column "{name}": turn it into a number if it is one')
    if facts.numbers and not (facts.words > facts.numbers and count > _LIKELY_LEVELS):  # a film may be called 1941
        problem = f'{where(row)} has {cell} in column "{name}", which also holds numbers'
        raise KindError(problem, "correct it, or say {category} or {ignore}", name)
    if sum(bool(_DATE.fullmatch(level)) for level in facts.levels) > 0.9 * count:
        return Ignored(name, "dates")
    if count <= _SURE_LEVELS or (count <= _LIKELY_LEVELS and count <= facts.observed / 2):
        return _as_levels(made, facts, "binary" if count == 2 else "category")
    if count == facts.observed or count > MOST_LEVELS:
        return Ignored(name, "an identifier or free text")
    return Ignored(name, f"{count} levels in {facts.observed:,} rows, too many to guess that it is a category")


def choose_counts(space: MixedSpace, x: Array) -> MixedSpace:
    """Poisson or negative binomial for each count, by which gives the odd rows, fitted on the even ones, more nats."""
    columns = list(space.columns)
    for i, column in enumerate(columns):
        if column.is_count:
            columns[i] = replace(column, kind="negative_binomial" if _overdispersed(x[:, i]) else "poisson")
    return replace(space, columns=tuple(columns))


def _overdispersed(cells: npt.NDArray[Any]) -> bool:
    fitted, judged = cells[::2], cells[1::2]
    fitted, judged = fitted[~np.isnan(fitted)], judged[~np.isnan(judged)]
    if len(fitted) < 2 or len(judged) == 0:
        return False
    mean, variance = max(float(fitted.mean()), 1e-3), float(fitted.var())
    if variance <= mean:
        return False
    from scipy import stats  # slow to import, and few tables have counts

    r = mean**2 / (variance - mean)
    negative_binomial = stats.nbinom.logpmf(judged, r, r / (r + mean)).sum()
    return bool(negative_binomial > stats.poisson.logpmf(judged, mean).sum())
