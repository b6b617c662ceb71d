"""Failing disks: an error at a chosen change of a folder, a limit on file sizes, a folder without permission."""

from __future__ import annotations

import errno
import os
import random
import resource
import signal
from collections.abc import Callable
from pathlib import Path

from torture.attempts import command
from torture.file_events import FileEvents, fail
from torture.subjects import TRAIN, Subjects, content, difference, leftovers

_ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES, errno.EDQUOT)


def _commands(subjects: Subjects, folder: Path) -> dict[str, tuple[object, ...]]:
    run, out = folder / "run", folder / "out"
    return {
        "train": ("train", subjects.table, *TRAIN, "--out", out / "run"),
        "resume": ("resume", run),
        "evaluate": ("evaluate", run),
        "report": ("report", run),
        "embed": ("embed", run, subjects.table, "-o", out / "codes.npz"),
        "decode": ("decode", run, subjects.folder / "reference" / "codes.npz", "-o", out / "x.csv"),
        "sample": ("sample", run, "-n", "5", "-o", out / "x.npy"),
        "export": ("export", run, "--format", "model", "-o", out / "model"),
        "data info": ("data", "info", subjects.table, "-o", out / "table.png"),
        "data pack": ("data", "pack", f"{subjects.images}:size=8"),
    }


def trial(subjects: Subjects, draws: random.Random, folder: Path) -> str | None:
    """One line and exit code 2; nothing half-written; the same command works once the disk does."""
    name = draws.choice(sorted(_commands(subjects, folder)))
    source = subjects.interrupted if name == "resume" else subjects.run
    subjects.copy(source, folder / "run")
    (folder / "out").mkdir()
    arguments = _commands(subjects, folder)[name]
    before = content(folder / "run")
    cache = folder / "cache" if name == "data pack" else subjects.cache
    fault_of_disk = _fault(draws, folder)

    def prepare() -> None:
        os.environ["WISEALE_CACHE"] = str(cache)
        fault_of_disk()

    ending = command(*arguments, folder=folder, prepare=prepare)
    if fault := ending.fault():
        return f"{name}: {fault}"
    if ending.code == 2 and name not in ("train", "resume", "data pack"):
        if left := leftovers(folder):
            return f"{name}: left {left[0]} behind"
        if content(folder / "run").keys() - before.keys() - {"report.html"} - _pictures(folder / "run"):
            return f"{name}: changed the run"
    again = (*arguments[:2],) if name == "resume" else arguments
    if name == "train" and (folder / "out" / "run" / "config.json").exists():
        again = ("resume", folder / "out" / "run")
    ending = command(*again, folder=folder)
    if fault := ending.fault(allowed=(0,)):
        return f"{name}, again on a good disk: {fault}"
    trained = {"train": folder / "out" / "run", "resume": folder / "run"}.get(name)
    if trained is not None and (problem := difference(content(trained), content(subjects.run))):
        return f"{name}: {problem}"
    return None


def _pictures(run: Path) -> set[str]:
    folders = ("figures", "tables")
    return {str(path.relative_to(run)) for name in folders for path in (run / name).glob("*")}


def _fault(draws: random.Random, folder: Path) -> Callable[[], None]:
    if draws.random() < 0.4:
        most = int(10 ** draws.uniform(3, 5))  # enough for an error message

        def limited() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        return limited
    code, number = draws.choice(_ERRORS), int(draws.triangular(0, 60, 0))
    return FileEvents(folder).at(number, fail(code))
