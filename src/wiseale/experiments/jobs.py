"""The runs of a comparison: each a job, trained, resumed and evaluated by commands of its own, on an engine."""

from __future__ import annotations

import dataclasses
import math
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Literal

from wiseale.config import TrainConfig
from wiseale.errors import TerminatedError
from wiseale.platform.atomic_files import write_text
from wiseale.platform.json_files import to_json
from wiseale.platform.locks import is_locked
from wiseale.platform.machine import END_WITH_PARENT, NEW_GROUP, STOP_SIGNALS, handling, request_stop
from wiseale.processes.engines import Ending, Engine, Stop, run_all
from wiseale.runs.directory import RunDirectory

State = Literal["waiting", "training", "evaluating", "done", "failed"]

_FORWARDED = ("WISEALE_DATA", "WISEALE_SHARED_DATA", "WISEALE_NATIVE")
_COMMAND_MARK = "$ "
_STOP_SECONDS = 0.5  # between questions whether to stop
_SAVING_SECONDS = 60.0  # for a run whose parent was killed to save and end


@dataclass(frozen=True)
class Job:
    """One run of a comparison: its name in tables, its settings, its directory, and how many rows to evaluate it on."""

    name: str
    config: TrainConfig
    out: Path
    evaluate_rows: int = 10_000

    @property
    def log(self) -> Path:
        """The file with the output of its processes, and their commands."""
        return self.out.with_name(f"{self.out.name}.log")

    @property
    def last_log_line(self) -> str:
        """The last line that its processes printed."""
        if not self.log.exists():
            return "it has not begun"
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines and not lines[-1].startswith(_COMMAND_MARK) else "it ended without a word"

    def log_bytes(self) -> int:
        """Length of the log; it grows when a command is started."""
        return self.log.stat().st_size if self.log.exists() else 0

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

    @property
    def done(self) -> bool:
        """Whether it is trained and evaluated."""
        return self.next_step == "done"

    def next_command(self) -> list[str] | None:
        """The next command: train, resume or evaluate; None where the job is done."""
        match self.next_step:
            case "done":
                return None
            case "evaluate":
                return ["evaluate", str(self.out), "--most", str(self.evaluate_rows), "--no-figures"]
            case "resume":
                return ["resume", str(self.out)]
        settings = self.out.with_name(f"{self.out.name}.json")
        settings.parent.mkdir(parents=True, exist_ok=True)
        config = replace(self.config, figures=False)  # the comparison draws its own
        given = {key: value for key, value in dataclasses.asdict(config).items() if value is not None}
        write_text(settings, to_json(given))
        return ["train", "--config", str(settings), "--out", str(self.out)]


@dataclass(frozen=True)
class Caller:
    """What a job takes over from the process that asks for it: environment variables, and the working directory."""

    variables: Mapping[str, str]
    folder: Path


def do_job(job: Job, stop: Stop, caller: Caller) -> Ending:
    """Train, resume and evaluate in processes of their own, which end when this one does.

    It is called in a thread of this process or on a worker of a cluster. The folder of the run must be there: it shows
    that this machine sees the files of the machine that asks.
    """
    if not job.out.parent.is_dir():
        problem = f"{platform.node()} does not see {job.out.parent}"
        return Ending("failed", f"{problem}: --out must be on a file system that all workers share")
    while (arguments := job.next_command()) is not None:
        if stop.is_set():
            return Ending("stopped")
        if job.out.is_dir() and is_locked(job.out, wait=_SAVING_SECONDS):
            return Ending("failed", f"{job.out} is in use by another process: wait for it, or stop it")
        with job.log.open("a", encoding="utf-8") as log:
            log.write(f"{_COMMAND_MARK}wiseale {' '.join(arguments)}\n")
        if _run(job, arguments, stop, caller):
            return Ending("stopped") if _is_set(stop) else Ending("failed", job.last_log_line)
    return Ending("done")


def _run(job: Job, arguments: list[str], stop: Stop, caller: Caller) -> int:
    """Run a command to its end, or until it has saved after a stop; returns its exit code."""
    # One thread each: several single-threaded runs at once are faster than one after the other on several threads.
    own = {"OMP_NUM_THREADS": str(job.config.threads or 1), END_WITH_PARENT: "1"}
    stopping = False
    with (
        job.log.open("ab") as log,
        subprocess.Popen(
            [sys.executable, "-m", "wiseale", *arguments],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | caller.variables | own,
            cwd=caller.folder if caller.folder.is_dir() else None,
            creationflags=NEW_GROUP,
        ) as process,
    ):
        while True:
            try:
                return process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                if not stopping and _is_set(stop):
                    request_stop(process)
                    stopping = True


def _is_set(stop: Stop) -> bool:
    """Whether to stop; also where nobody can be asked any more, because the cluster is gone."""
    try:
        return stop.is_set()
    except Exception:
        return True


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
        over: dict[Job, State] = {job: ending.state for job, ending in ended.items() if ending.state != "stopped"}
        show([(job, active.get(job, over.get(job, "waiting"))) for job in jobs])

    with handling(_terminate, [number for number in STOP_SIGNALS if number != signal.SIGINT]):
        ended = run_all(jobs, partial(do_job, caller=Caller(variables, Path.cwd())), engine, tick, limit)
    return [Failure(job, ending.reason) for job, ending in ended.items() if ending.state == "failed"]


def _state(job: Job, logged: int) -> State:
    """What its files say that a job is doing; every command adds to the log."""
    if job.log_bytes() == logged:
        return "waiting"
    return "training" if job.next_step in ("train", "resume") else "evaluating"


def _terminate(number: int, frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP end this process as Ctrl-C does, so that its runs are stopped in order."""
    raise TerminatedError
