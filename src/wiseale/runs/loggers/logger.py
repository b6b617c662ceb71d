"""What a logger is: settings with a name in the registry, that open a writer for the epochs of a run."""

from __future__ import annotations

import contextlib
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar, Protocol

from wiseale.config import Settings, parse_spec
from wiseale.runs.directory import RunDirectory
from wiseale.training.learner import Learner
from wiseale.training.loop import Journal
from wiseale.training.plan import require_package
from wiseale.training.records import EpochRecord, TimedEpochRecord
from wiseale.training.settings import RunSettings


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


@contextlib.contextmanager
def also_logged(journal: Journal, run: RunDirectory, settings: RunSettings | None) -> Iterator[Journal]:
    """The journal, which also passes every epoch to the logger of the settings, if they have one."""
    if settings is None or settings.logger is None:
        yield journal
        return
    require_package(settings.logger, parse_spec(settings.spec("logger"))[0])
    with settings.logger.opened(run) as writer:
        _write_again(writer, run)
        yield _Logged(journal, writer)


class _Logged:
    """A journal that passes every call on and writes each epoch's terms."""

    def __init__(self, journal: Journal, writer: Writer) -> None:
        self._journal = journal
        self._writer = writer

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        self._journal.step(epoch, step_in_epoch, steps_per_epoch, terms)

    def epoch(self, record: TimedEpochRecord) -> None:
        self._journal.epoch(record)
        self._writer.write(record.step, time.time(), _numbers(record, record.samples / record.seconds))

    def checkpoint(self, learner: Learner) -> None:
        self._journal.checkpoint(learner)

    def interrupted(self) -> bool:
        return self._journal.interrupted()


def _write_again(writer: Writer, run: RunDirectory) -> None:
    """Write every epoch of metrics.jsonl, at the times it would have had without interruptions."""
    timing = {cost.epoch: cost for cost in run.read_timing()}
    at = time.time() - sum(cost.seconds for cost in timing.values())
    for record in run.read_metrics():
        cost = timing.get(record.epoch)  # None where the user has deleted a damaged timing.jsonl
        at += cost.seconds if cost else 0.0
        writer.write(record.step, at, _numbers(record, cost.samples_per_second if cost else None))


def _numbers(record: EpochRecord, rate: float | None) -> dict[str, float]:
    """Every number of an epoch under its name: ``epoch``, ``lr``, …, ``train/loss``, ``held_out/loss``, …."""
    named = {"epoch": record.epoch, "lr": record.lr, "warmup": record.warmup}
    if rate is not None:
        named["samples_per_second"] = rate
    for part, terms in (("train", record.train), ("held_out", record.held_out)):
        named |= {f"{part}/{term}": value for term, value in (terms or {}).items()}
    return named
