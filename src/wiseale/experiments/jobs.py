"""Runs the jobs of a comparison on an engine; a stopped job is resumed by the next call."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Literal

from wiseale.errors import TerminatedError
from wiseale.experiments.job import Caller, Job, do_job
from wiseale.platform.machine import STOP_SIGNALS, handling
from wiseale.processes.engines import Ending, Engine, run_all

State = Literal["waiting", "training", "evaluating", "done", "failed"]

_FORWARDED = ("WISEALE_DATA", "WISEALE_SHARED_DATA", "WISEALE_NATIVE")


@dataclass(frozen=True)
class Failure:
    """A job that did not finish, and the last line it printed."""

    job: Job
    reason: str


Show = Callable[[Sequence[tuple[Job, State]]], None]


def run_jobs(jobs: Sequence[Job], engine: Engine, show: Show, limit: float = math.inf) -> list[Failure]:
    """Run every unfinished job; returns those that failed.

    After ``limit`` seconds, or when interrupted, the runs under way save a checkpoint and end; the same call later
    resumes them.
    """
    jobs = [replace(job, out=job.out.absolute()) for job in jobs]
    for job in jobs:
        job.out.parent.mkdir(parents=True, exist_ok=True)
    logged = {job: job.log_bytes() for job in jobs}
    variables = {name: os.environ[name] for name in _FORWARDED if name in os.environ}

    def tick(ended: Mapping[Job, Ending], running: Collection[Job]) -> None:
        active = {job: _state(job, logged[job]) for job in running}
        show([(job, active.get(job) or _state_at_end(ended.get(job))) for job in jobs])

    with handling(_terminate, [number for number in STOP_SIGNALS if number != signal.SIGINT]):
        ended = run_all(jobs, partial(do_job, caller=Caller(variables, Path.cwd())), engine, tick, limit)
    return [Failure(job, ending.reason) for job, ending in ended.items() if ending.state == "failed"]


def _state(job: Job, logged: int) -> State:
    """What its files say that a job is doing; every command adds to the log."""
    if job.log_bytes() == logged:
        return "waiting"
    return "training" if job.next_step in ("train", "resume") else "evaluating"


def _state_at_end(ending: Ending | None) -> State:
    return "waiting" if ending is None or ending.state == "stopped" else ending.state


def _terminate(number: int, frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP end this process as Ctrl-C does, so that its runs are stopped in order."""
    raise TerminatedError
