"""Kills: at a chosen change of the run directory or at a random moment, once or twice, then resume."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from torture.attempts import Draws, Ending, command
from torture.file_events import FileEvents, kill
from torture.subjects import TRAIN, Subjects, content, difference

_CPU_SECONDS = 0.35  # about what the run takes once everything is imported
_RANKS = ("--processes", "2")


def random_trial(subjects: Subjects, draws: Draws, folder: Path) -> str | None:
    """A run that is killed after a random amount of work, also inside libraries where no hook sees it."""
    return _kill_and_resume(subjects, folder, [_after(draws.uniform(0.005, _CPU_SECONDS))])


def double_trial(subjects: Subjects, draws: Draws, folder: Path) -> str | None:
    """A run that is killed, resumed and killed again."""
    number = draws.randrange(_events(subjects, folder))
    moments = [FileEvents(folder / "run").at(number, kill), _after(draws.uniform(0.005, _CPU_SECONDS / 2))]
    draws.shuffle(moments)
    return _kill_and_resume(subjects, folder, moments)


def event_trial(subjects: Subjects, draws: Draws, folder: Path) -> str | None:
    """A run that is killed before a change of its directory: trial n at the n-th of them."""
    number = draws.number % _events(subjects, folder)
    return _kill_and_resume(subjects, folder, [FileEvents(folder / "run").at(number, kill)])


def _kill_and_resume(subjects: Subjects, folder: Path, moments: list[Callable[[], None]]) -> str | None:
    """It must end with the bytes of a run that was not killed."""
    for prepare in moments:
        ending = command(*_next(subjects, folder), folder=folder, prepare=prepare)
        if ending.code not in (0, -signal.SIGKILL, -signal.SIGPROF):
            return f"killed: {ending.fault() or ending}"
    ending = command(*_next(subjects, folder), folder=folder)
    if fault := ending.fault(allowed=(0,)):
        return fault
    return difference(content(folder / "run"), content(subjects.run))


def _next(subjects: Subjects, folder: Path) -> tuple[object, ...]:
    run = folder / "run"
    return ("resume", run) if run.exists() else ("train", subjects.table, *TRAIN, "--out", run)


@cache
def _events(subjects: Subjects, folder: Path) -> int:
    """Changes that an uninterrupted run makes in its directory."""
    run = folder / "counted"
    events = FileEvents(run)
    ending = command("train", subjects.table, *TRAIN, "--out", run, folder=folder, prepare=events.at(-1, kill))
    shutil.rmtree(run)
    assert ending.code == 0, ending
    return events.count


def event_count(subjects: Subjects) -> int:
    """Trials of :func:`event_trial` that cover every change."""
    return _events(subjects, subjects.folder)


def _after(seconds: float) -> Callable[[], None]:
    """SIGPROF, which ends the process as a kill does, after so much processor time, however busy the machine is."""

    def prepare() -> None:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)

    return prepare


def ranks_trial(subjects: Subjects, draws: Draws, folder: Path) -> str | None:
    """Two ranks, one or both of which are killed; resumed, they must end as two that were not."""
    whole = _two_ranks(subjects)
    run = folder / "run"
    process = _start("train", subjects.table, *TRAIN, *_RANKS, "--out", run)
    until = draws.choice((0, 9, 18))
    while process.poll() is None and _newest(run) < until:
        time.sleep(0.002)
    time.sleep(draws.uniform(0, 0.05))
    ranks = _children(process.pid)
    for child in ranks if draws.random() < 0.5 else ranks[:1]:
        _kill(child)
    if draws.random() < 0.5:
        _kill(process.pid)
        for child in ranks:
            _kill(child)
    process.communicate(timeout=120)
    ending = _finish("resume", run, *_RANKS) if run.exists() else _finish(*_train_ranks(subjects, run))
    if fault := ending.fault(allowed=(0,)):
        return fault
    return difference(content(run), content(whole))


def _two_ranks(subjects: Subjects) -> Path:
    run = subjects.folder / "two ranks"
    if not run.exists():
        ending = _finish(*_train_ranks(subjects, run))
        assert ending.code == 0, ending
    return run


def _train_ranks(subjects: Subjects, run: Path) -> tuple[object, ...]:
    return ("train", subjects.table, *TRAIN, *_RANKS, "--out", run)


def _start(*arguments: object) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "wiseale", *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _finish(*arguments: object) -> Ending:
    process = _start(*arguments)
    out, err = process.communicate(timeout=300)
    return Ending(process.returncode, out, err)


def _newest(run: Path) -> int:
    return max((int(path.name) for path in run.glob("checkpoints/[0-9]*")), default=-1)


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def stop_trial(subjects: Subjects, draws: Draws, folder: Path) -> str | None:
    """A run that is asked to stop must save, say how to continue, and end with the code of the signal."""
    number = draws.choice((signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
    run, moment = folder / "run", draws.uniform(0.0, _CPU_SECONDS)

    def later() -> None:
        def send(*_: object) -> None:
            signal.raise_signal(number)

        signal.signal(signal.SIGPROF, send)
        signal.setitimer(signal.ITIMER_PROF, moment)

    ending = command("train", subjects.table, *TRAIN, "--out", run, folder=folder, prepare=later)
    codes = (0, 128 + number, -number)  # before the run has started a signal ends the process as it does any other
    if fault := ending.fault(codes):
        return fault
    if not run.exists():
        return None
    ending = command("resume", run, folder=folder)
    if fault := ending.fault(allowed=(0,)):
        return fault
    return difference(content(run), content(subjects.run))
