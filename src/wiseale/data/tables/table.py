"""Users' tables: files of any type as datasets, of numbers alone or of columns with kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from wiseale.config import Settings, setting
from wiseale.data.dataset import Dataset
from wiseale.data.defaults import make_dataset
from wiseale.data.tables.blocks import CellError, RawBlock, as_numbers, gather
from wiseale.data.tables.columns import Selection, select
from wiseale.data.tables.csv_form import Form
from wiseale.data.tables.kinds import choose_counts, parse_kinds
from wiseale.data.tables.mixed import encoded, learn_space, leave_out_row_numbers
from wiseale.errors import DataError
from wiseale.spaces import MixedSpace, Scaling
from wiseale.spaces.columns import Unseen


class Reader(Protocol):
    """Reads the chosen columns of a table, block by block, in order."""

    @property
    def form(self) -> Form | None:
        """How the table is written, where it is text."""
        ...

    @property
    def line_of(self) -> Callable[[int], int | None] | None:
        """The line of a row of data, counted from 0, where the table is text."""
        ...

    def raw(self, chosen: Selection) -> Iterator[RawBlock]:
        """The features as they are written."""
        ...


@dataclass(frozen=True)
class TableFile(Settings):
    """Named columns; one row is one observation."""

    columns: tuple[str, ...] = setting((), "columns to learn from, by name or number from 1 (default: all)")
    drop: tuple[str, ...] = setting((), "columns to leave out")
    labels: tuple[str, ...] = setting((), "columns, of words or numbers, to colour plots by; never learned from")
    kinds: str = setting("", "kinds of columns: price:number,colour:category,sold:binary,species:label")
    missing: Literal["learn", "error"] = setting("learn", "error refuses missing cells")
    unseen: Unseen = setting("error", "what a level that training did not see is: error, missing, or other")
    standardize: Literal["auto", "none", "columns", "global"] = setting("auto", "by which mean and scale")

    def load(self, path: Path, name: str, *, training: bool = True) -> Dataset:
        """Read the file; ``training=False`` accepts a single row.

        A table of numbers alone is a matrix of them; otherwise the columns get kinds, see
        :mod:`wiseale.data.tables.mixed`.
        """
        names, read = self.open(path)
        asked = parse_kinds(self.kinds)
        labels = dict.fromkeys((*self.labels, *(name for name, kind in asked.items() if kind == "label")))
        kinds = {name: kind for name, kind in asked.items() if kind != "label"}
        roles = (self.columns, self.drop, tuple(labels))
        chosen = select(path.name, names, *roles, row_numbers=True, line_of=read.line_of)
        space: MixedSpace | None = None
        try:
            if kinds:
                raise CellError("kinds are said")
            x, factors = gather(chosen, as_numbers(chosen, read.raw(chosen)))
            learned, x = leave_out_row_numbers(chosen, x)
        except CellError:
            learned = learn_space(chosen, read.raw, kinds, self.missing, self.unseen)
            if (space := learned.space) is None:
                x, factors = gather(learned.chosen, as_numbers(learned.chosen, read.raw(learned.chosen)))
            else:
                x, factors = gather(learned.chosen, encoded(space, learned.chosen, read.raw), missing=True)
                space = choose_counts(space, x)
        if len(x) < 1 + training:
            held = "no rows" if len(x) == 0 else "only 1 row"
            raise DataError(f"{path.name} has {held}: at least {1 + training} are needed")
        scaling: Scaling | None = None if self.standardize == "auto" else self.standardize
        columns = tuple(learned.chosen.names[i] or str(i + 1) for i in learned.chosen.features)
        return make_dataset(
            x, name, factors=factors, columns=columns, scaling=scaling, cells=space, ignored=learned.ignored
        )

    def open(self, path: Path) -> tuple[Sequence[str], Reader]:
        """The names of the columns, and a function that reads the chosen ones."""
        raise NotImplementedError
