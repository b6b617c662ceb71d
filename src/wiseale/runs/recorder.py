"""Writes what the training loop reports to the run directory and the display; turns signals into an orderly stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, Protocol

from wiseale.platform.machine import SIGPIPE, STOP_SIGNALS, peak_memory_bytes
from wiseale.processes.collectives import MaxOverRanks
from wiseale.processes.world import World
from wiseale.runs.checkpoint import Snapshot, save_checkpoint
from wiseale.runs.directory import RunDirectory, append_line
from wiseale.runs.record import EpochTiming, History, RunRecord
from wiseale.training.learner import Learner
from wiseale.training.records import TimedEpochRecord


class Display(Protocol):
    """Shows a run's progress to a person."""

    def loading(self, done: int, total: int) -> None:
        """Data is being packed or rendered."""

    def started(self, record: RunRecord, notes: Sequence[str]) -> None:
        """Training begins or continues; ``notes`` are further lines to show."""

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        """Some steps were made."""

    def epoch(self, record: TimedEpochRecord) -> None:
        """An epoch ended."""


class Recorder:
    """Writes what the loop reports, on rank 0; while it is open, SIGINT, SIGTERM and SIGHUP ask the loop to return.

    A signal to one rank stops all of them, after the same step. So does a display that nobody reads any more, as after
    ``wiseale train ... | head``: it counts as SIGPIPE.

    Attributes:
        signal: the signal that interrupted the run, if any.
    """

    def __init__(self, run: RunDirectory, record: RunRecord, display: Display, world: World) -> None:
        self._run = run
        self._record = record
        self._display = display
        self._saving = Background()
        self._saved_step: int | None = None
        self._is_rank_0 = world.is_rank_0
        self._max_over_ranks = MaxOverRanks(world)
        self._before: dict[int, Any] = {}
        self._received = 0
        self.signal: int | None = None

    def __enter__(self) -> Recorder:
        for number in STOP_SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup and the like mean it
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self._saving.wait()
        except OSError:
            if kind is None:  # otherwise the first error is the one to report
                raise
        finally:
            self._restore_signals()

    def _restore_signals(self) -> None:
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
        """Append the epoch to metrics.jsonl and timing.jsonl."""
        if not self._is_rank_0:
            return
        self._saving.raise_error()
        append_line(self._run.metrics, record)
        timing = EpochTiming(
            epoch=record.epoch,
            seconds=round(record.seconds, 6),
            samples_per_second=round(record.samples / record.seconds, 3),
            peak_memory_bytes=peak_memory_bytes(),
            cpu_seconds_per_thousand_rows=round(1000 * record.cpu_seconds / record.samples, 6),
        )
        append_line(self._run.timing, timing)
        self._show(lambda: self._display.epoch(record))

    def checkpoint(self, learner: Learner) -> None:
        """Copy the learner's state and save it while training goes on.

        A checkpoint that is due while the one before is still being written is left out, so that saving more often
        than the disk can follow does not slow training down. After a signal it is written before this returns.
        """
        if not self._is_rank_0:
            return
        self._saving.raise_error()
        if self._saving.busy and self.signal is None:
            return
        self._save(learner)
        if self.signal is not None:
            self._saving.wait()

    def finish(self, learner: Learner) -> None:
        """Save the learner at the end of training, unless its last step is saved, and wait until it is on disk."""
        if self._is_rank_0:
            if self._saved_step != learner.progress.step:
                self._save(learner)
            self._saving.wait()

    def wait(self) -> None:
        """Wait until the checkpoint under way is on disk."""
        self._saving.wait()

    def _save(self, learner: Learner) -> None:
        saved = Snapshot.of(learner, History.of(self._record, self._run.metrics))
        self._saved_step = learner.progress.step

        def write() -> None:
            self._run.sync_records()  # the epochs that the checkpoint refers to are on disk before it
            save_checkpoint(self._run.checkpoints, saved)

        self._saving.start(write)

    def _show(self, display: Callable[[], None]) -> None:
        if self._received == SIGPIPE:
            return
        try:
            display()
        except OSError:
            self._received = SIGPIPE


class Background:
    """Runs one job at a time in a thread; an error of a job is raised by the next call that asks for it.

    The thread is not a daemon: an orderly exit of the process waits for the job under way. A kill ends it like any
    other work, so jobs must leave their files whole at every moment.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    @property
    def busy(self) -> bool:
        """Whether a job is under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, job: Callable[[], object]) -> None:
        """Begin a job, after the one under way has ended."""
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(job,), name="wiseale-checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Wait for the job under way, if any."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.raise_error()

    def raise_error(self) -> None:
        """Raise the error that a job has ended with, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self, job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as error:
            self._error = error
