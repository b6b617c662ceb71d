"""Failing disks: an error at a chosen change of a folder, a limit on file sizes, a folder of another user."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

from torture.attempts import Draws, command
from torture.file_events import FileEvents, fail
from torture.subjects import COMPARE, TRAIN, Subjects, content, difference, leftovers

_ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES, errno.EDQUOT)
_NOBODY = 65_534
# Commands that start an interpreter or read fonts, which may be closed to other users: that is no fault of wiseale's.
_OPEN_FILES_OF_PYTHON = ("compare", "data info", "report", "evaluate", "explore")


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
        "impute": ("impute", run, subjects.holes, "-o", out / "filled.csv"),
        "explore": ("explore", run, "--html", out / "page.html"),
        "export": ("export", run, "--format", "model", "-o", out / "model"),
        "data info": ("data", "info", subjects.table, "-o", out / "table.png"),
        "data pack": ("data", "pack", f"{subjects.images}:size=8"),
        "cache clean": ("cache", "clean"),
        "compare": ("compare", subjects.table, "--objectives", "aevb", *COMPARE, "--out", out / "comparison"),
    }


def trial(subjects: Subjects, draws: Draws, folder: Path) -> str | None:
    """One line and exit code 2; nothing half-written; the same command works once the disk does."""
    commands = _commands(subjects, folder)
    name = list(commands)[draws.number % len(commands)]
    source = subjects.interrupted if name == "resume" else subjects.run
    subjects.copy(source, folder / "run")
    (folder / "out").mkdir()
    before = content(folder / "run")
    cache = folder / "cache" if name in ("data pack", "cache clean") else subjects.cache
    fault_of_disk, other_user = _fault(draws, folder, subjects, name not in _OPEN_FILES_OF_PYTHON)

    def prepare() -> None:
        os.environ["WISEALE_CACHE"] = str(cache)
        fault_of_disk()

    ending = command(*commands[name], folder=folder, prepare=prepare)
    failed = (0, 1, 2) if name == "compare" else (0, 2)  # 1: runs of a comparison failed, which the others survive
    if fault := ending.fault(failed):
        return f"{name}: {fault}"
    if ending.code == 2 and name not in ("train", "resume", "data pack", "compare"):
        if left := leftovers(folder):
            return f"{name}: left {left[0]} behind"
        if content(folder / "run").keys() - before.keys() - {"report.html"} - _pictures(folder / "run"):
            return f"{name}: changed the run"
    if other_user and ending.code == 0 and name == "resume":
        return f"{name}: wrote into a run of another user"
    again = commands[name]
    if name == "train" and (folder / "out" / "run" / "config.json").exists():
        again = ("resume", folder / "out" / "run")
    ending = command(*again, folder=folder, prepare=lambda: os.environ.update(WISEALE_CACHE=str(cache)))
    if fault := ending.fault(allowed=(0,)):
        return f"{name}, again on a good disk: {fault}"
    trained = {"train": folder / "out" / "run", "resume": folder / "run"}.get(name)
    if trained is not None and (problem := difference(content(trained), content(subjects.run))):
        return f"{name}: {problem}"
    return None


def _pictures(run: Path) -> set[str]:
    folders = ("figures", "tables")
    return {str(path.relative_to(run)) for name in folders for path in (run / name).glob("*")}


def _fault(draws: Draws, folder: Path, subjects: Subjects, other_users: bool) -> tuple[Callable[[], None], bool]:
    """What brings the fault about, and whether it is another user."""
    kind = draws.random()
    if kind < 0.3:
        most = int(10 ** draws.uniform(3, 5))  # enough for an error message

        def limited() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        return limited, False
    if kind < 0.5 and other_users and os.geteuid() == 0:

        def other_user() -> None:
            os.setgroups([])
            os.setgid(_NOBODY)
            os.setuid(_NOBODY)

        for path in (folder, *subjects.folder.parents):
            if path.stat().st_mode & 0o005 != 0o005:  # otherwise nothing below it can be read at all
                path.chmod(path.stat().st_mode | 0o005)
        return other_user, True
    code, number = draws.choice(_ERRORS), int(draws.triangular(0, 60, 0))
    return FileEvents(folder).at(number, fail(code)), False
