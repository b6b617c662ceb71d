"""What a logger is: settings with a name in the registry, that open a writer beside a run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar, Protocol

from wiseale.config import Settings
from wiseale.runs.directory import RunDirectory


class Writer(Protocol):
    """Where the numbers of each epoch go."""

    def write(self, step: int, at: float, numbers: Mapping[str, float]) -> None:
        """Write the numbers of an epoch, by name, that ended after ``step`` steps at the time ``at`` (Unix seconds).

        When a run is resumed, every epoch so far is written again, with the same numbers.
        """


@dataclass(frozen=True)
class Logger(Settings):
    """Base of all loggers.

    Attributes:
        package: the module it needs; None where Python's own are enough.
        extra: the extra of wiseale that installs it.
    """

    package: ClassVar[str | None] = None
    extra: ClassVar[str] = ""

    @abstractmethod
    def opened(self, run: RunDirectory) -> AbstractContextManager[Writer]:
        """A writer for this run, closed at the end."""


def settings_of(run: RunDirectory) -> dict[str, str]:
    """The settings of a run that have a value, as text: what tracking programs call its parameters."""
    settings = run.read_record().settings.to_values()
    return {name: str(value) for name, value in settings.items() if value is not None}
