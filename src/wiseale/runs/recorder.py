"""The loop's journal on disk and on screen; signals that ask it to save and return."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Mapping
from types import FrameType
from typing import Any, Protocol

from wiseale.platform.machine import peak_memory_bytes
from wiseale.platform.signals import STOP_SIGNALS
from wiseale.processes.collectives import MaxOverRanks
from wiseale.processes.world import World
from wiseale.runs.checkpoint import save_checkpoint
from wiseale.runs.directory import RunDirectory, append_line
from wiseale.training.learner import Learner
from wiseale.training.loop import EpochRecord


class Display(Protocol):
    """What a person sees of a run."""

    def loading(self, done: int, total: int) -> None:
        """Data is being packed or rendered."""

    def started(self, facts: Mapping[str, Any]) -> None:
        """Training begins, or goes on."""

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        """Some steps were made."""

    def epoch(self, record: EpochRecord) -> None:
        """An epoch ended."""


class Recorder:
    """Writes what the loop reports, on rank 0; while it is open, SIGINT and SIGTERM ask the loop to return.

    A signal to one rank stops all of them, after the same step.

    Attributes:
        signal: the signal that interrupted the run, if any.
    """

    def __init__(self, run: RunDirectory, display: Display, world: World) -> None:
        self._run = run
        self._display = display
        self._is_rank_0 = world.is_rank_0
        self._max_over_ranks = MaxOverRanks(world)
        self._before: dict[int, Any] = {}
        self._received = 0
        self.signal: int | None = None

    def __enter__(self) -> Recorder:
        for number in STOP_SIGNALS:
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._received = number
        signal.signal(number, self._before[number])  # a second one ends the process at once

    def interrupted(self) -> bool:
        """Whether any rank was asked to stop: the same answer on all."""
        self.signal = self._max_over_ranks(self._received) or None
        return self.signal is not None

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        """Some steps were made."""
        self._display.step(epoch, step_in_epoch, steps_per_epoch, terms)

    def epoch(self, record: EpochRecord) -> None:
        """An epoch ended: two lines on disk."""
        if not self._is_rank_0:
            return
        told = dataclasses.asdict(record)
        seconds, samples = told.pop("seconds"), told.pop("samples")
        append_line(self._run.metrics, told)
        timing = {
            "epoch": record.epoch,
            "seconds": round(seconds, 6),
            "samples_per_second": round(samples / seconds, 3),
            "peak_memory_bytes": peak_memory_bytes(),
        }
        append_line(self._run.timing, timing)
        self._display.epoch(record)

    def checkpoint(self, learner: Learner) -> None:
        """Save the learner."""
        if self._is_rank_0:
            save_checkpoint(self._run.checkpoints, learner)
