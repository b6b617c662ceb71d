"""Runs the jobs of a comparison on an engine, and shares them with other processes that do the same.

A failed job does not stop the others, a stopped one is resumed, and one that another process works on is left to it.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Literal

from wiseale.errors import TerminatedError
from wiseale.experiments.job import Job
from wiseale.experiments.job_work import Caller, Ended, do_job
from wiseale.platform.locks import is_locked
from wiseale.platform.signals import STOP_SIGNALS
from wiseale.processes.engines import Engine

State = Literal["waiting", "training", "evaluating", "taken", "done", "failed"]

_POLL_SECONDS = 0.1
_POLL_SECONDS_PER_JOB = 0.002  # a network file system should not be asked about a thousand jobs ten times a second
_TAKEN_SECONDS = 1.0  # between looks at a job that another process works on
_FORWARDED = ("WISEALE_DATA", "WISEALE_SHARED_DATA", "WISEALE_NATIVE")


@dataclass(frozen=True)
class Failure:
    """A job that did not finish, and the last line it printed."""

    job: Job
    reason: str


Show = Callable[[Sequence[tuple[Job, State]]], None]


def run_jobs(
    jobs: Sequence[Job], engine: Engine, show: Show, limit: float = math.inf, *, wait_for_others: bool = True
) -> list[Failure]:
    """Run every unfinished job, in the given order as far as the engine keeps it; returns those that failed.

    Jobs that another process works on come last: they are waited for, and done here if that process gives up, unless
    ``wait_for_others`` is False. After ``limit`` seconds, or when interrupted, the runs under way save a checkpoint and
    end; the same call later resumes them.
    """
    end = time.monotonic() + limit
    pause = max(_POLL_SECONDS, _POLL_SECONDS_PER_JOB * len(jobs))
    states: dict[Job, State] = {job: "done" if job.next_step == "done" else "waiting" for job in jobs}
    to_submit = [job for job in jobs if states[job] == "waiting"]
    logged = {job: job.log_bytes() for job in to_submit}
    running: dict[Future[Ended], Job] = {}
    taken: dict[Job, float] = {}  # when to look again
    failures = []
    try:
        with _terminated_as_interrupt():
            while (to_submit or running or taken) and time.monotonic() < end:
                for job in to_submit:
                    running[_submit(job, engine)] = job
                to_submit = []
                for future, job in list(running.items()):
                    if not future.done():
                        states[job] = _state(job, logged[job])
                        continue
                    del running[future]
                    match _ended(future):
                        case Ended("failed", reason):
                            states[job] = "failed"
                            failures.append(Failure(job, reason))
                        case Ended("taken"):
                            states[job] = "taken"
                            if wait_for_others:
                                taken[job] = time.monotonic() + _TAKEN_SECONDS
                        case _:
                            states[job] = "done"
                for job in [job for job, due in taken.items() if time.monotonic() >= due]:
                    taken[job] = time.monotonic() + _TAKEN_SECONDS
                    if job.next_step == "done" or not is_locked(job.lock):
                        del taken[job]
                        to_submit.append(job)  # returns at once if it is done
                show([*states.items()])
                if to_submit or running or taken:
                    time.sleep(pause)
    finally:
        if running:
            engine.stop.set()
            wait(running)
    return failures


def _submit(job: Job, engine: Engine) -> Future[Ended]:
    job.out.parent.mkdir(parents=True, exist_ok=True)
    variables = {name: os.environ[name] for name in _FORWARDED if name in os.environ}
    absolute = replace(job, out=job.out.absolute())
    return engine.executor.submit(do_job, absolute, engine.stop, Caller(variables, Path.cwd()))


def _ended(future: Future[Ended]) -> Ended:
    """How the job ended; an engine that lost it, or could not call it, is a failure of that job."""
    if future.cancelled():
        return Ended("failed", "the cluster has gone: call again to continue")
    if (error := future.exception()) is not None:
        return Ended("failed", f"{type(error).__name__}: {error}".splitlines()[0])
    return future.result()


def _state(job: Job, logged: int) -> State:
    """What its files say that a job is doing; every command adds to the log."""
    if job.log_bytes() == logged:
        return "waiting"
    return "training" if job.next_step in ("train", "resume") else "evaluating"


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
