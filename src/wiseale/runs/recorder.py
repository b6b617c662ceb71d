"""Writes what the training loop reports to the run directory and the display; turns signals into an orderly stop."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from types import FrameType
from typing import Any, Protocol

from wiseale.platform.machine import SIGPIPE, STOP_SIGNALS, peak_memory_bytes
from wiseale.processes.collectives import MaxOverRanks
from wiseale.processes.world import World
from wiseale.runs.checkpoint import Snapshot, save_checkpoint
from wiseale.runs.directory import RunDirectory, append_line
from wiseale.runs.loggers import Write, numbers_of
from wiseale.runs.record import EpochTiming, History, RunRecord
from wiseale.training.learner import Learner
from wiseale.training.loop import Reports, TimedEpochRecord


class Display(Reports, Protocol):
    """Shows a run's progress to a person."""

    def loading(self, done: int, total: int) -> None:
        """Data is being packed or rendered."""

    def started(self, record: RunRecord, notes: Sequence[str]) -> None:
        """Training begins or continues; ``notes`` are further lines to show."""


class Recorder:
    """Writes what the loop reports, on rank 0; while it is open, SIGINT, SIGTERM and SIGHUP ask the loop to return.

    A signal to one rank stops all of them, after the same step. So does a display that nobody reads any more, as after
    ``wiseale train ... | head``: it counts as SIGPIPE.

    Checkpoints are written by a thread, one at a time, and an error there is raised by the next call. An orderly exit
    of the process waits for the one under way. A kill ends it like any other work: files are whole at every moment.

    ``signal`` is the one that interrupted the run, if any; ``logger`` also gets the numbers of every epoch.
    """

    def __init__(self, run: RunDirectory, record: RunRecord, display: Display, world: World) -> None:
        self._run = run
        self._record = record
        self._display = display
        self._thread = ThreadPoolExecutor(1, "wiseale-checkpoint")
        self._saving: Future[None] | None = None
        self._saved_step: int | None = None
        self._is_rank_0 = world.is_rank_0
        self._max_over_ranks = MaxOverRanks(world)
        self._before: dict[int, Any] = {}
        self._received = 0
        self.signal: int | None = None
        self.logger: Write | None = None

    def __enter__(self) -> Recorder:
        for number in STOP_SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup and the like mean it
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            with suppress(OSError) if kind else nullcontext():  # the first error is the one to report
                self.wait()
        finally:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._received = number
        signal.signal(number, self._before[number])  # a second one ends the process at once

    def interrupted(self) -> bool:
        """Whether any rank was asked to stop: the same answer on all."""
        self.signal = self._max_over_ranks(self._received) or None
        return self.signal is not None

    def started(self, notes: Sequence[str]) -> None:
        """Training begins or continues."""
        if self._is_rank_0:
            self._show(lambda: self._display.started(self._record, notes))

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        """Some steps were made."""
        self._show(lambda: self._display.step(epoch, step_in_epoch, steps_per_epoch, terms))

    def epoch(self, record: TimedEpochRecord) -> None:
        """Append the epoch to metrics.jsonl and timing.jsonl, and pass it to the logger."""
        if not self._is_rank_0:
            return
        if self._saving is not None and self._saving.done():
            self.wait()
        rate = record.samples / record.seconds
        append_line(self._run.metrics, record)
        timing = EpochTiming(
            epoch=record.epoch,
            seconds=round(record.seconds, 6),
            samples_per_second=round(rate, 3),
            peak_memory_bytes=peak_memory_bytes(),
            cpu_seconds_per_thousand_rows=round(1000 * record.cpu_seconds / record.samples, 6),
        )
        append_line(self._run.timing, timing)
        self._show(lambda: self._display.epoch(record))
        if self.logger is not None:
            self.logger(record.step, time.time(), numbers_of(record, rate))

    def checkpoint(self, learner: Learner) -> None:
        """Copy the learner's state and save it while training goes on.

        A checkpoint that is due while the one before is still being written is left out, so that saving more often
        than the disk can follow does not slow training down. After a signal it is written before this returns.
        """
        if not self._is_rank_0:
            return
        if self._saving is not None and self._saving.done():
            self.wait()
        if self._saving is not None and self.signal is None:
            return
        self._save(learner)
        if self.signal is not None:
            self.wait()

    def finish(self, learner: Learner) -> None:
        """Save the learner at the end of training, unless its last step is saved, and wait until it is on disk."""
        if self._is_rank_0 and self._saved_step != learner.progress.step:
            self._save(learner)
        self.wait()

    def wait(self) -> None:
        """Wait until the checkpoint under way is on disk."""
        saving, self._saving = self._saving, None
        if saving is not None:
            saving.result()

    def _save(self, learner: Learner) -> None:
        self.wait()
        snapshot = Snapshot.of(learner, History.of(self._record, self._run.metrics))
        self._saved_step = learner.progress.step

        def write() -> None:
            self._run.sync_records()  # the epochs that the checkpoint refers to are on disk before it
            save_checkpoint(self._run.checkpoints, snapshot)

        self._saving = self._thread.submit(write)

    def _show(self, display: Callable[[], None]) -> None:
        if self._received == SIGPIPE:
            return
        try:
            display()
        except OSError:
            self._received = SIGPIPE
