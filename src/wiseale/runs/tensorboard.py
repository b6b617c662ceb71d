"""The metrics of a run for TensorBoard, beside ``metrics.jsonl``, which stays the record of the run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from wiseale.runs.directory import RunDirectory
from wiseale.training.loop import Journal
from wiseale.training.plan import require_logger
from wiseale.training.records import EpochRecord, TimedEpochRecord

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

    from wiseale.training.learner import Learner


@contextlib.contextmanager
def also_logged(journal: Journal, run: RunDirectory, logger: str | None) -> Iterator[Journal]:
    """The journal, which with a logger also writes events under ``RUN/tensorboard``."""
    if logger is None:
        yield journal
        return
    require_logger(logger)
    from torch.utils.tensorboard import SummaryWriter

    # On resumption all events are written again from metrics.jsonl: a kill may have lost some, and those of epochs that
    # are trained again must not stay. purge_step tells a running TensorBoard server to drop what it has read.
    for stale in run.tensorboard.glob("events.*"):
        stale.unlink()
    writer = SummaryWriter(str(run.tensorboard), purge_step=0)
    try:
        _write_again(writer, run)
        yield _Logged(journal, writer)
    finally:
        writer.close()


class _Logged:
    """A journal that passes every call on and writes each epoch's terms as events."""

    def __init__(self, journal: Journal, writer: SummaryWriter) -> None:
        self._journal = journal
        self._writer = writer

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        self._journal.step(epoch, step_in_epoch, steps_per_epoch, terms)

    def epoch(self, record: TimedEpochRecord) -> None:
        self._journal.epoch(record)
        _write(self._writer, record, record.samples / record.seconds, time.time())
        self._writer.flush()

    def checkpoint(self, learner: Learner) -> None:
        self._journal.checkpoint(learner)

    def interrupted(self) -> bool:
        return self._journal.interrupted()


def _write_again(writer: SummaryWriter, run: RunDirectory) -> None:
    """Write every epoch of metrics.jsonl, at the times it would have had without interruptions."""
    timing = {cost.epoch: cost for cost in run.read_timing()}
    at = time.time() - sum(cost.seconds for cost in timing.values())
    for record in run.read_metrics():
        cost = timing.get(record.epoch)  # None where the user has deleted a damaged timing.jsonl
        at += cost.seconds if cost else 0.0
        _write(writer, record, cost.samples_per_second if cost else None, at)


def _write(writer: SummaryWriter, record: EpochRecord, rate: float | None, at: float) -> None:
    """Write every number of an epoch under its name, over optimiser steps."""
    named = {"lr": record.lr, "warmup": record.warmup} | ({} if rate is None else {"samples_per_second": rate})
    for part, terms in (("train", record.train), ("held_out", record.held_out)):
        named |= {f"{part}/{term}": value for term, value in (terms or {}).items()}
    for name, value in named.items():
        writer.add_scalar(name, value, record.step, walltime=at)
