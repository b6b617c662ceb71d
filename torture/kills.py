"""Kills: at a chosen change of the run directory or at a random moment, once or twice, then resume."""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from torture.attempts import Ending, command
from torture.file_events import FileEvents, kill
from torture.subjects import TRAIN, Subjects, content, difference


def trial(subjects: Subjects, draws: random.Random, folder: Path) -> str | None:
    """A run that is killed up to twice and resumed must end with the bytes of one that was not."""
    run = folder / "run"
    first = ("train", subjects.table, *TRAIN, "--out", run)
    for _ in range(draws.choice((1, 1, 2))):
        ending = _killed(first if not run.exists() else ("resume", run), folder, draws)
        if ending.code not in (0, -signal.SIGKILL, -signal.SIGALRM):
            return f"killed: {ending.fault() or ending}"
    ending = command(*(first if not run.exists() else ("resume", run)), folder=folder)
    if fault := ending.fault(allowed=(0,)):
        return fault
    return difference(content(run), content(subjects.run))


def _killed(arguments: tuple[object, ...], folder: Path, draws: random.Random) -> Ending:
    if draws.random() < 0.3:  # inside the safetensors library, say, where no hook sees it
        moment = draws.uniform(0.01, 0.5)
        return command(*arguments, folder=folder, prepare=_alarm(moment))
    events = FileEvents(folder / "run")
    return command(*arguments, folder=folder, prepare=events.at(draws.randrange(160), kill))


def _alarm(seconds: float) -> Callable[[], None]:
    def prepare() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    return prepare


def stop_trial(subjects: Subjects, draws: random.Random, folder: Path) -> str | None:
    """A run that is asked to stop must save, say how to continue, and end with the code of the signal."""
    number = draws.choice((signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
    run, moment = folder / "run", draws.uniform(0.0, 0.4)

    def later() -> None:
        def send(*_: object) -> None:
            signal.raise_signal(number)

        signal.signal(signal.SIGALRM, send)
        signal.setitimer(signal.ITIMER_REAL, moment)

    ending = command("train", subjects.table, *TRAIN, "--out", run, folder=folder, prepare=later)
    codes = (0, 128 + number, -number)  # before the run has started a signal ends the process as it does any other
    if fault := ending.fault(codes):
        return fault
    if not run.exists():
        return None
    ending = command("resume", run, folder=folder)
    if fault := ending.fault(allowed=(0,)):
        return fault
    shutil.rmtree(run / "checkpoints")  # an interruption is one more occasion to save
    whole = {name: data for name, data in content(subjects.run).items() if not name.startswith("checkpoints")}
    return difference(content(run), whole)
