"""One run of a comparison: its settings, its directory, and the commands that train, resume and evaluate it."""

from __future__ import annotations

import dataclasses
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wiseale.config import TrainConfig
from wiseale.platform.atomic_files import write_text
from wiseale.platform.json_files import to_json
from wiseale.platform.locks import is_locked
from wiseale.platform.machine import END_WITH_PARENT, NEW_GROUP, request_stop
from wiseale.processes.engines import Ending, Stop
from wiseale.runs.directory import RunDirectory

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

    def log_command(self, arguments: list[str]) -> None:
        """Note in the log that a command is started."""
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"{_COMMAND_MARK}wiseale {' '.join(arguments)}\n")

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
        config = dataclasses.replace(self.config, figures=False)  # the comparison draws its own
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
        if _run(job, arguments, stop, caller):
            return Ending("stopped") if _is_set(stop) else Ending("failed", job.last_log_line)
    return Ending("done")


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
