"""The metrics of a run for TensorBoard, beside ``metrics.jsonl``, which stays the record of the run."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from wiseale.processes.world import ALONE, World
from wiseale.runs.directory import RunDirectory
from wiseale.training.loop import EpochRecord, Journal
from wiseale.training.plan import require_logger

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

    from wiseale.training.learner import Learner


@contextlib.contextmanager
def also_logged(journal: Journal, run: RunDirectory, world: World = ALONE) -> Iterator[Journal]:
    """The journal, with events under ``RUN/tensorboard`` as well where the run's settings ask for them."""
    logger = run.read_config().get("logger") if world.is_rank_0 else None
    if logger is None:
        yield journal
        return
    require_logger(logger)
    from torch.utils.tensorboard import SummaryWriter

    # Events are made again from the metrics that a resumption has kept: a kill may have lost some of them, and those of
    # epochs that are done again must not stay. The purge tells a server that watches to forget what it has read.
    for stale in run.tensorboard.glob("events.*"):
        stale.unlink()
    writer = SummaryWriter(str(run.tensorboard), purge_step=0)
    try:
        _write_again(writer, run)
        yield _Logged(journal, writer)
    finally:
        writer.close()


class _Logged:
    """Passes everything on, and writes each epoch's terms."""

    def __init__(self, journal: Journal, writer: SummaryWriter) -> None:
        self._journal = journal
        self._writer = writer

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        self._journal.step(epoch, step_in_epoch, steps_per_epoch, terms)

    def epoch(self, record: EpochRecord) -> None:
        self._journal.epoch(record)
        _write(self._writer, dataclasses.asdict(record), record.samples / record.seconds, time.time())
        self._writer.flush()

    def checkpoint(self, learner: Learner) -> None:
        self._journal.checkpoint(learner)

    def interrupted(self) -> bool:
        return self._journal.interrupted()


def _write_again(writer: SummaryWriter, run: RunDirectory) -> None:
    """Every epoch in metrics.jsonl, at the times it would have had without interruptions."""
    timing = run.read_timing()
    at = time.time() - sum(one["seconds"] for one in timing)
    for record, one in zip(run.read_metrics(), timing, strict=True):
        at += one["seconds"]
        _write(writer, record, one["samples_per_second"], at)


def _write(writer: SummaryWriter, record: Mapping[str, Any], rate: float, at: float) -> None:
    """Every number of an epoch under its name, over optimiser steps."""
    named = {"lr": record["lr"], "warmup": record["warmup"], "samples_per_second": rate}
    for part in ("train", "held_out"):
        named |= {f"{part}/{term}": value for term, value in (record[part] or {}).items()}
    for name, value in named.items():
        writer.add_scalar(name, value, record["step"], walltime=at)
