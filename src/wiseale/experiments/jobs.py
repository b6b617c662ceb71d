"""Training runs as parallel processes over the cores: resumable, failures isolated."""

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wiseale.config import TrainConfig
from wiseale.durable import to_json, write_text
from wiseale.errors import RunError
from wiseale.training.run_directory import RunDirectory

_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Job:
    """One run to make: a name for people, its settings, and where it goes."""

    name: str
    config: TrainConfig
    out: Path

    @property
    def log(self) -> Path:
        """What the process prints."""
        return self.out.with_name(f"{self.out.name}.log")

    def epochs_done(self) -> int:
        """Epochs reported so far."""
        metrics = RunDirectory(self.out).metrics
        return metrics.read_bytes().count(b"\n") if metrics.exists() else 0

    def command(self) -> list[str]:
        """What runs it, or continues it."""
        python = [sys.executable, "-m", "wiseale"]
        if RunDirectory(self.out).config.exists():
            return [*python, "resume", str(self.out)]
        settings = self.out.with_name(f"{self.out.name}.json")
        settings.parent.mkdir(parents=True, exist_ok=True)
        given = {key: value for key, value in dataclasses.asdict(self.config).items() if value is not None}
        write_text(settings, to_json(given))
        return [*python, "train", "--config", str(settings), "--out", str(self.out)]


@dataclass(frozen=True)
class Failure:
    """A job that did not finish, and the last line it printed."""

    job: Job
    reason: str


def run_jobs(jobs: Sequence[Job], workers: int, show: Callable[[Sequence[Job]], None]) -> list[Failure]:
    """Make every run that is not finished yet, ``workers`` at a time; those that fail are returned, the rest go on.

    An interruption reaches the runs too: they save and end, and the same call later continues them.
    """
    waiting = [job for job in jobs if not RunDirectory(job.out).finished]
    running: dict[Job, subprocess.Popen[bytes]] = {}
    failures = []
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                job = waiting.pop(0)
                running[job] = _launch(job)
            for job, process in list(running.items()):
                if process.poll() is not None:
                    del running[job]
                    if process.returncode != 0:
                        failures.append(Failure(job, _last_line(job.log)))
            show(jobs)
            time.sleep(_POLL_SECONDS)
    finally:
        for process in running.values():
            process.send_signal(signal.SIGTERM)
        for process in running.values():
            process.wait()
    return failures


def _launch(job: Job) -> subprocess.Popen[bytes]:
    command = job.command()
    try:
        with job.log.open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    except OSError as error:
        raise RunError(f"cannot start {job.name}: {error}") from None


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it ended without a word"
