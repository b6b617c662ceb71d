"""Does one job, wherever it is called: in a thread of a local pool, or on a worker of a cluster."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from wiseale.errors import RunError
from wiseale.experiments.job import Job
from wiseale.platform.locks import exclusive_lock, is_locked
from wiseale.platform.signals import END_WITH_PARENT, NEW_GROUP, request_stop
from wiseale.processes.engines import Stop
from wiseale.processes.shared_work import Ended

_STOP_SECONDS = 0.5  # between questions whether to stop
_SAVING_SECONDS = 60.0  # for a run whose parent was killed to save and end


@dataclass(frozen=True)
class Caller:
    """What a job takes over from the process that asks for it: environment variables, and the working directory."""

    variables: Mapping[str, str]
    folder: Path


def do_job(job: Job, stop: Stop, caller: Caller) -> Ended:
    """Train, resume and evaluate in processes of their own, which end when this one does; one caller per job at a time.

    The folder of the run must be there: it shows that this machine sees the files of the machine that asks.
    """
    if not job.out.parent.is_dir():
        problem = f"{platform.node()} does not see {job.out.parent}"
        return Ended("failed", f"{problem}: --out must be on a file system that all workers share")
    with ExitStack() as stack:
        try:
            stack.enter_context(exclusive_lock(job.lock, wait=False))
        except BlockingIOError:
            return Ended("taken")
        except RunError as error:
            return Ended("failed", str(error))
        while (arguments := job.next_command()) is not None:
            if stop.is_set():
                return Ended("stopped")
            if not _run_is_free(job.out):
                return Ended("taken")
            code = _run(job, arguments, stop, caller)
            if code and stop.is_set():
                return Ended("stopped")
            if code:
                return Ended("failed", job.last_log_line)
    return Ended("done")


def _run_is_free(run: Path) -> bool:
    """False where somebody else, not through a job, works on the run; one whose parent was killed may be saving."""
    for _ in range(int(_SAVING_SECONDS / _STOP_SECONDS)):
        if not run.is_dir() or not is_locked(run):
            return True
        threading.Event().wait(_STOP_SECONDS)
    return False


def _run(job: Job, arguments: list[str], stop: Stop, caller: Caller) -> int:
    """Run a command to its end, or until it has saved after a stop; returns its exit code."""
    # One thread each: several single-threaded runs at once are faster than one after the other on several threads.
    own = {"OMP_NUM_THREADS": str(job.config.threads or 1), END_WITH_PARENT: "1"}
    job.log_command(arguments)
    with job.log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "wiseale", *arguments],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | caller.variables | own,
            cwd=caller.folder if caller.folder.is_dir() else None,
            creationflags=NEW_GROUP,
        )
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_STOP_SECONDS):
            if _is_set(stop):
                request_stop(process)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return process.wait()
    finally:
        ended.set()
        watcher.join()
        assert process.stdin is not None
        process.stdin.close()


def _is_set(stop: Stop) -> bool:
    """Whether to stop; also where nobody can be asked any more, because the cluster is gone."""
    try:
        return stop.is_set()
    except Exception:
        return True
