"""Which kind each column of a table is: said by the user, or decided from its type and what it holds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from wiseale.config import split_items, unquote
from wiseale.data.dataset import Array
from wiseale.data.tables.blocks import Selection
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
    column: RawColumn = field(default_factory=lambda: RawColumn(np.empty(0)))  # its type, without cells
    written: dict[str, int] = field(default_factory=dict)  # the first different words, and in how many rows each is
    values: set[float] = field(default_factory=set)  # the first different numbers
    _last: float = math.nan

    def add(self, column: RawColumn) -> None:
        """Look at the next cells."""
        if not self.rows:
            self.column = replace(column, values=column.values[:0], known=None)
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
        if not column.is_numeric and len(self.written) <= MOST_LEVELS:
            for word, count in islice(column.word_counts().items(), MOST_LEVELS + 1):
                self.written[word] = self.written.get(word, 0) + count
        if not self.words and len(self.values) <= MOST_LEVELS:
            self.values.update(np.unique(present)[: MOST_LEVELS + 1].tolist())

    @property
    def counts(self) -> bool:
        """Whether every row has a whole number, one more than the row before."""
        return self.whole and self.counting and self.numbers == self.rows

    @property
    def is_plain(self) -> bool:
        """Whether every row has a number, and its type says nothing else."""
        return self.column.categories is None and not self.column.holds and self.numbers == self.rows

    @property
    def observed(self) -> int:
        """Cells that are not missing."""
        return self.numbers + self.words


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


def decide(name: str, facts: Facts, asked: Asked | None, chosen: Selection, *, row_numbers: str = "") -> Column | str:
    """A column with its kind, or why it is not learned from; ``row_numbers`` says so of one that has them."""
    raw = facts.column
    if asked in ("ignore", "label"):
        return AS_SAID if asked == "ignore" else "a label"
    if raw.holds == "nested values":
        raise KindError(f'column "{name}" holds nested values ({raw.dtype})', "say {ignore}, or flatten it", name)
    if raw.holds:
        if asked is not None:
            advice = f"turn them into {'seconds' if raw.holds == 'durations' else 'numbers'}, or say {{ignore}}"
            raise KindError(f'column "{name}" holds {raw.holds}, not a {asked}', advice, name)
        return raw.holds
    if facts.observed == 0:
        raise KindError(f'column "{name}" is empty, all {facts.rows:,} cells are missing', "say {ignore}", name)
    column = Column(name, "number", whole=facts.numbers > 0 and facts.whole, dtype=raw.dtype, ordered=raw.ordered)
    if asked in ("number", "count"):
        return _as_number(column, facts, asked, chosen)
    if asked in ("binary", "category"):
        return _as_levels(column, facts, asked)
    if raw.categories is not None:
        return _as_levels(column, facts, "binary" if len(raw.categories) == 2 else "category")
    if facts.words:
        return _from_words(column, facts, chosen)
    if row_numbers:
        return row_numbers
    if raw.boolean or facts.values == {0, 1}:
        return _as_levels(column, facts, "binary")
    return replace(column, kind="poisson") if _looks_counted(facts) else column


def _looks_counted(facts: Facts) -> bool:
    """Whole numbers from 0 on, few of them large."""
    mean = facts.total / facts.numbers
    return facts.whole and facts.low == 0 and 3 <= facts.high <= _HIGHEST_COUNT and mean < facts.high / 3


def _as_number(column: Column, facts: Facts, asked: Asked, chosen: Selection) -> Column:
    if facts.first_word is not None:
        row, cell = facts.first_word
        advice = facts.column.form.advice(facts.written) if facts.column.form else ""
        problem = f'{chosen.place(row)} has {cell} in column "{column.name}", not a {asked}'
        raise DataError(problem + (advice and f": {advice}"))
    if asked == "count" and not (facts.whole and facts.low >= 0):
        problem = f'column "{column.name}" holds numbers from {facts.low:g} that are no counts'
        raise KindError(problem, "say {number}", column.name)
    return replace(column, kind="poisson" if asked == "count" else "number")


def _as_levels(column: Column, facts: Facts, asked: Literal["binary", "category"]) -> Column:
    levels: tuple[Level, ...]
    if facts.column.boolean:
        levels = (False, True)
    elif facts.column.categories is not None:
        levels = tuple((as_word if facts.words else _level)(value) for value in facts.column.categories)
    else:
        levels = tuple(sorted(facts.written) if facts.words else sorted(map(_level, facts.values)))
    if len(levels) > MOST_LEVELS:
        problem = f'column "{column.name}" has more than {MOST_LEVELS:,} levels'
        raise KindError(problem, "say {ignore}, or merge levels", column.name)
    if asked == "binary" and len(levels) != 2:
        problem = f'column "{column.name}" has {counted(len(levels), "level")}, and binary needs 2'
        raise KindError(problem, "say {category}", column.name)
    return replace(column, kind=asked, levels=levels, whole=False)


def merge_rare(column: Column, facts: Facts) -> Column:
    """The column with the words seen in fewer than 5 rows as one level "other", if at least two levels are left."""
    counts = {level: facts.written.get(level, 0) for level in column.levels if isinstance(level, str)}
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


def _from_words(column: Column, facts: Facts, chosen: Selection) -> Column | str:
    name, levels, form = column.name, facts.written, facts.column.form
    count = len(levels)
    assert facts.first_word is not None
    row, cell = facts.first_word
    if form is not None and any("\n" in level for level in levels):
        place = chosen.place(row)
        raise DataError(f'{place} has a line break in column "{name}": a quote before it may not be closed')
    if form is not None:
        odd = [level for level in levels if form.advice([level])]
        advice = form.advice(odd).replace("{", "{{").replace("}", "}}")
    else:
        odd = [level for level in levels if re.fullmatch(r"[-+]?\d+,\d+", level)]
        advice = "turn it into a number if it is one" if odd else ""
    if advice:
        problem = f'{chosen.place(row) if repr(odd[0]) == cell else chosen.file} has {odd[0]!r} in column "{name}"'
        raise KindError(problem, f"{advice}, or say {{category}} or {{ignore}}", name)
    if facts.numbers and not (facts.words > facts.numbers and count > _LIKELY_LEVELS):  # a film may be called 1941
        problem = f'{chosen.place(row)} has {cell} in column "{name}", which also holds numbers'
        raise KindError(problem, "correct it, or say {category} or {ignore}", name)
    if sum(bool(_DATE.fullmatch(level)) for level in levels) > 0.9 * count:
        return "dates"
    if count <= _SURE_LEVELS or (count <= _LIKELY_LEVELS and count <= facts.observed / 2):
        return _as_levels(column, facts, "binary" if count == 2 else "category")
    if count == facts.observed or count > MOST_LEVELS:
        return "an identifier or free text"
    return f"{count} levels in {facts.observed:,} rows, too many to guess that it is a category"


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
