"""An error about a column that another kind would repair, with the kind spelled as the reader's interface does."""

from __future__ import annotations

from collections.abc import Callable

from wiseale.data.tables.columns import quote_name
from wiseale.errors import DataError

_ADVISED = ("number", "category", "ignore")


class KindError(DataError):
    """A column cannot be learned as it is.

    Attributes:
        problem: what is wrong with it.
        advice: what to do, with ``{ignore}`` where the column is to be said to be of the kind ``ignore``.
        name: of the column.

    >>> error = KindError('column "id" is empty', "say {ignore}", "id")
    >>> str(error)
    'column "id" is empty: say id:ignore'
    """

    def __init__(self, problem: str, advice: str, name: str) -> None:
        super().__init__(problem, advice, name)
        self.problem, self.advice, self.name = problem, advice, name

    def __str__(self) -> str:
        return self.message(lambda name, kind: f"{quote_name(name)}:{kind}")

    def message(self, spell: Callable[[str, str], str]) -> str:
        """The error in words; ``spell`` writes a column and its kind as the reader's interface does."""
        said = {kind: spell(self.name, kind) for kind in _ADVISED}
        return f"{self.problem}: {self.advice.format(**said)}"
