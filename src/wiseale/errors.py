"""The errors a user can cause or repair; the command line prints each as one line and exits with code 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def counted(n: int, thing: str) -> str:
    """A number of things in words.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


class WiseAleError(Exception):
    """An error the user can repair: the message says what is wrong, where, and what to do."""


class ConfigError(WiseAleError):
    """A setting is unknown, malformed or out of range."""


class DataError(WiseAleError):
    """The data cannot be used as it is."""


class RunError(WiseAleError):
    """A run directory cannot be created, read or continued."""


class ModelFileError(WiseAleError):
    """A model or checkpoint is damaged, or not what it claims to be."""


class NotEnoughMemoryError(WiseAleError):
    """What was asked for does not fit in memory."""


class DivergenceError(WiseAleError):
    """Training produced a value that is not finite; checkpoints written before remain usable.

    ``term`` is the term of the loss and ``value`` its value, or ``term`` names weights and ``value`` is None. ``step``
    is the optimiser step, or the number of the batch of held-out rows, which have no ``epoch``. ``checkpoint`` is the
    newest one, if any is written already; ``in_run`` says whether training writes a run directory.
    """

    def __init__(
        self, term: str, value: float | None, step: int, epoch: int | None = None, held_out: bool = False
    ) -> None:
        super().__init__(term, value, step, epoch, held_out)
        self.term, self.value, self.step, self.epoch, self.held_out = term, value, step, epoch, held_out
        self.checkpoint: Path | None = None
        self.in_run = False

    def __str__(self) -> str:
        return self.message(str)

    def message(self, spell: Callable[[str], str]) -> str:
        """The error in words; ``spell`` writes the name of a setting as the reader's interface does (``--lr``)."""
        epoch = "" if self.epoch is None else f" (epoch {self.epoch})"
        where = f"on held-out batch {self.step}" if self.held_out else f"at step {self.step}{epoch}"
        what = f"the weights {self.term} are not finite" if self.value is None else f"{self.term} is {self.value}"
        advice = f"try a lower {spell('lr')}, {spell('max_grad_norm')} 1, or a larger sigma_min in {spell('network')}"
        saved = (
            "no checkpoint was due yet" if self.checkpoint is None else f"the last good checkpoint is {self.checkpoint}"
        )
        return f"training diverged {where}: {what}; {advice}" + (f" ({saved})" if self.in_run else "")


class TerminatedError(BaseException):
    """SIGTERM arrived: as KeyboardInterrupt is for SIGINT, it passes every ``except Exception``."""


class CollapseWarning(UserWarning):
    """A trained model's codes say next to nothing about the data; the message says what to try."""


class IgnoredColumnsWarning(UserWarning):
    """Columns of a data frame are not learned from; the message says which, why, and how to keep them."""


class ReportedByAnotherRankError(WiseAleError):
    """Another rank reports the error to the user; this one ends with exit code 2 and prints nothing."""
