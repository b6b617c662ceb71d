"""Run a command in a forked process under limits of time and memory, and judge how it ended.

A fork of a process that has imported everything takes milliseconds where a new interpreter takes seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.01
_STILL_SECONDS = 60.0  # without any processor time, after which a process is taken for blocked
_GIGABYTE = 1 << 30


class Draws(random.Random):
    """The random numbers of a trial, a function of the seed, the group and the trial's number, from 0."""

    def __new__(cls, seed: object, group: str, number: int) -> Draws:
        """An object of the base class takes a single argument."""
        return super().__new__(cls)

    def __init__(self, seed: object, group: str, number: int) -> None:
        super().__init__(f"{seed}/{group}/{number}")
        self.number = number


@dataclass(frozen=True)
class Ending:
    """How a command ended: exit code (below 0: a signal; None: it was still running), and what it printed."""

    code: int | None
    out: str
    err: str

    def fault(self, allowed: Sequence[int] = (0, 2)) -> str | None:
        """What is wrong with this ending: a hang, a crash, a traceback, a wrong code, more than one line."""
        if self.code is None:
            return "hang"
        if "Traceback" in self.err or "Traceback" in self.out:
            return f"traceback: {self.err.strip().splitlines()[-1][:200]}"
        if self.code not in allowed:
            return f"exit code {self.code}: {self.err.strip()[-200:]}"
        if self.code == 2:
            lines = [line for line in self.err.splitlines() if line.startswith("wiseale: error: ")]
            if len(lines) != 1 or any(ord(letter) < 32 for letter in lines[0]):
                return f"not one line: {self.err[-300:]!r}"
        return None


def command(
    *arguments: object,
    folder: Path,
    prepare: Callable[[], None] = lambda: None,
    seconds: float = PATIENCE_SECONDS,
    gigabytes: float = 4.0,
) -> Ending:
    """Run ``wiseale ARGUMENTS`` in a forked process; ``prepare`` is called in it first."""
    from wiseale.cli import main

    return forked(lambda: main([str(word) for word in arguments]), folder, prepare, seconds, gigabytes)


def forked(
    work: Callable[[], object],
    folder: Path,
    prepare: Callable[[], None] = lambda: None,
    seconds: float = PATIENCE_SECONDS,
    gigabytes: float = 4.0,
) -> Ending:
    """Do some work in a forked process with so much time, and so much memory on top of what it has now.

    In a process that :func:`batch` has forked for many trials, it is done there, under that process's limits.
    """
    out, err = folder / ".stdout", folder / ".stderr"
    if _in_batch:
        return _here(work, folder, prepare)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setsid()
            for stream, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
            sys.stdout, sys.stderr = (os.fdopen(stream, "w", closefd=False) for stream in (1, 2))
            warnings.resetwarnings()
            _limit_memory(int(gigabytes * _GIGABYTE))
            prepare()
            work()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
    code = _wait(child, seconds)
    texts = [path.read_text(errors="replace") if path.exists() else "" for path in (out, err)]
    for path in (out, err):
        path.unlink(missing_ok=True)
    return Ending(code, *texts)


_in_batch = False


def batch(trials: Sequence[Callable[[], str | None]], folder: Path, seconds: float) -> list[str | None]:
    """What came of trials done one after another in a single forked process: much cheaper than a fork for each.

    The list is shorter than the trials where one of them has ended the process or taken too long.
    """
    results = folder / "batch.jsonl"
    results.unlink(missing_ok=True)

    def work() -> None:
        global _in_batch
        _in_batch = True
        with results.open("w", encoding="utf-8") as file:
            for trial in trials:
                file.write(json.dumps(trial()) + "\n")
                file.flush()

    forked(work, folder, seconds=seconds)
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]


def _here(work: Callable[[], object], folder: Path, prepare: Callable[[], None]) -> Ending:
    out, err = folder / ".stdout", folder / ".stderr"
    kept, streams, code = (os.dup(1), os.dup(2)), (sys.stdout, sys.stderr), 1
    try:
        for stream, path in ((1, out), (2, err)):
            opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(opened, stream)
            os.close(opened)
        sys.stdout, sys.stderr = (os.fdopen(stream, "w", closefd=False) for stream in (1, 2))
        prepare()
        work()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = streams
        for stream, descriptor in zip((1, 2), kept, strict=True):
            os.dup2(descriptor, stream)
            os.close(descriptor)
    texts = [path.read_text(errors="replace") for path in (out, err)]
    for path in (out, err):
        path.unlink(missing_ok=True)
    return Ending(code, *texts)


def _wait(child: int, seconds: float) -> int | None:
    """The exit code; None after so much processor time, or where the process has stood still for a minute.

    Processor time, because wall-clock time on a busy machine says nothing about the process.
    """
    used, moved = 0.0, time.monotonic()
    while used < seconds and time.monotonic() < moved + _STILL_SECONDS:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(_POLL_SECONDS)
        if (now := _processor_seconds(child)) > used:
            used, moved = now, time.monotonic()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _processor_seconds(child: int) -> float:
    """Processor time of a process and of the children it has waited for."""
    fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def _limit_memory(extra: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + extra
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
