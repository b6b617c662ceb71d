"""Trains and evaluates runs in parallel processes; a failed run does not stop the others, a stopped one is resumed."""

from __future__ import annotations

import dataclasses
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal

from wiseale.config import TrainConfig
from wiseale.errors import RunError, TerminatedError
from wiseale.platform.atomic_files import to_json, write_text
from wiseale.platform.signals import NEW_GROUP, STOP_SIGNALS, request_stop
from wiseale.runs.directory import RunDirectory

State = Literal["waiting", "training", "evaluating", "done", "failed"]

_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Job:
    """One run of a comparison: its name in tables, its settings, its directory, and how many rows to evaluate it on."""

    name: str
    config: TrainConfig
    out: Path
    evaluate_rows: int = 10_000

    @property
    def log(self) -> Path:
        """The file with the output of its processes."""
        return self.out.with_name(f"{self.out.name}.log")

    @property
    def last_log_line(self) -> str:
        """The last line of its log."""
        if not self.log.exists():
            return "it has not begun"
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "it ended without a word"

    def epochs_done(self) -> int:
        """Epochs reported so far."""
        metrics = RunDirectory(self.out).metrics
        return metrics.read_bytes().count(b"\n") if metrics.exists() else 0

    @property
    def next_step(self) -> Literal["train", "resume", "evaluate", "done"]:
        """What is to be done next."""
        run = RunDirectory(self.out)
        if run.finished:
            return "done" if run.evaluation.exists() else "evaluate"
        return "resume" if run.config.exists() else "train"

    def next_command(self) -> tuple[State, list[str]] | None:
        """The next command: train, resume or evaluate; None where the job is done."""
        match self.next_step:
            case "done":
                return None
            case "evaluate":
                return "evaluating", ["evaluate", str(self.out), "--most", str(self.evaluate_rows), "--no-figures"]
            case "resume":
                return "training", ["resume", str(self.out)]
        settings = self.out.with_name(f"{self.out.name}.json")
        settings.parent.mkdir(parents=True, exist_ok=True)
        config = dataclasses.replace(self.config, figures=False)  # the comparison draws its own
        given = {key: value for key, value in dataclasses.asdict(config).items() if value is not None}
        write_text(settings, to_json(given))
        return "training", ["train", "--config", str(settings), "--out", str(self.out)]


@dataclass(frozen=True)
class Failure:
    """A job that did not finish, and the last line it printed."""

    job: Job
    reason: str


Show = Callable[[Sequence[tuple[Job, State]]], None]


def run_jobs(jobs: Sequence[Job], workers: int, show: Show, limit: float = math.inf) -> list[Failure]:
    """Run every unfinished job, ``workers`` at a time, in the given order; returns those that failed.

    A failed job does not stop the others. After ``limit`` seconds, or when interrupted, the runs under way save a
    checkpoint and end; the same call later resumes them.
    """
    end = time.monotonic() + limit
    states: dict[Job, State] = dict.fromkeys(jobs, "waiting")
    waiting = list(jobs)
    running: dict[Job, subprocess.Popen[bytes]] = {}
    failures = []
    try:
        with _terminated_as_interrupt():
            while (waiting or running) and time.monotonic() < end:
                while waiting and len(running) < workers:
                    job = waiting.pop(0)
                    following = job.next_command()
                    if following is None:
                        states[job] = "done"
                        continue
                    states[job], arguments = following
                    running[job] = _launch(job, arguments)
                for job, process in list(running.items()):
                    if process.poll() is None:
                        continue
                    del running[job]
                    if process.returncode == 0:
                        waiting.insert(0, job)  # its next step, if any, goes first
                    else:
                        states[job] = "failed"
                        failures.append(Failure(job, job.last_log_line))
                show([*states.items()])
                time.sleep(_POLL_SECONDS)
    finally:
        for process in running.values():
            request_stop(process)
        for process in running.values():
            process.wait()
    return failures


@contextmanager
def _terminated_as_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end this process as Ctrl-C does, so that its runs are stopped in order."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TerminatedError

    numbers = [number for number in STOP_SIGNALS if number != signal.SIGINT]
    before = {n: signal.signal(n, stop) for n in numbers if signal.getsignal(n) != signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _launch(job: Job, arguments: list[str]) -> subprocess.Popen[bytes]:
    # One thread each: several single-threaded runs at once are faster than one after the other on several threads.
    environment = os.environ | {"OMP_NUM_THREADS": str(job.config.threads or 1)}
    command = [sys.executable, "-m", "wiseale", *arguments]
    try:
        with job.log.open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                creationflags=NEW_GROUP,
            )
    except OSError as error:
        raise RunError(f"cannot start {job.name}: {error}") from None
