"""The groups of trials: each trial takes the subjects, its own draws and an empty folder, and returns what failed."""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torture import contention, damage, disk, hostile, kills, power_trials, writers
from torture.attempts import Draws, forked
from torture.subjects import TRAIN, Subjects, make_subjects

Trial = Callable[[Subjects, Draws, Path], str | None]


@dataclass(frozen=True)
class Group:
    """Trials of one kind.

    Attributes:
        goal: how many a full run makes, or a function that counts all there are.
        slow: whether a trial takes minutes.
        batch: how many may be done in one forked process: more than 1 where trials only call commands.
    """

    trial: Trial
    goal: int | Callable[[Subjects], int]
    batch: int = 1
    slow: bool = False

    def total(self, subjects: Subjects) -> int:
        """How many trials a full run makes."""
        return self.goal if isinstance(self.goal, int) else self.goal(subjects)


GROUPS = {
    "random kills": Group(kills.random_trial, 100),
    "double kills": Group(kills.double_trial, 40),
    "kills at file events": Group(kills.event_trial, kills.event_count),
    "kills of two ranks": Group(kills.ranks_trial, 20, slow=True),
    "signals": Group(kills.stop_trial, 40),
    "power loss": Group(power_trials.trial, lambda subjects: len(power_trials.make_states(subjects))),
    "failing disk": Group(disk.trial, 280),
    "damaged runs": Group(damage.run_trial, 240, batch=10),
    "damaged finished runs": Group(damage.finished_trial, 240, batch=10),
    "damaged packs": Group(damage.pack_trial, 120),
    "hostile models": Group(hostile.model_trial, 2800, batch=40),
    "hostile settings": Group(hostile.settings_trial, 1700),
    "hostile data": Group(hostile.data_trial, 2500, batch=40),
    "concurrent writers": Group(writers.writers_trial, 20),
    "contention": Group(contention.trial, 5, slow=True),
    "soak": Group(writers.soak_trial, 6, slow=True),
}


def prepare(folder: Path) -> Subjects:
    """Import everything, compile the kernels and make the subjects; trials are forks of this process."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["WISEALE_CACHE"] = str(folder / "subjects" / "cache")
    import torch

    torch.set_num_threads(1)
    import wiseale

    for module in pkgutil.walk_packages(wiseale.__path__, "wiseale."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    importlib.import_module("encodings.cp437")  # of zip files; another user may not read Python's own files
    from wiseale import kernels

    kernels.state()
    subjects = make_subjects(folder / "subjects")
    _import_what_training_imports(subjects)
    damage.make_references(subjects)
    return subjects


def _import_what_training_imports(subjects: Subjects) -> None:
    """Import here what torch and others import on first use: in each forked trial it would take over a second."""
    listed, run = subjects.folder / "modules.txt", subjects.folder / "warm-up"

    def work() -> None:
        from wiseale.cli import main

        picture = ("data", "info", subjects.table, "-o", run / "x.png")
        train = ("train", subjects.table, *TRAIN, "--out", run)
        for arguments in (train, ("evaluate", run), ("report", run), picture):
            with contextlib.suppress(SystemExit):
                main([str(word) for word in arguments])
        listed.write_text("\n".join(sys.modules))

    if not listed.exists():
        forked(work, subjects.folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in listed.read_text().split("\n") if listed.exists() else []:
            if name not in sys.modules and not name.startswith("__"):
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
