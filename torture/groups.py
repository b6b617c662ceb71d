"""The groups of trials: each trial takes the subjects, its own draws and an empty folder, and returns what failed."""

from __future__ import annotations

import importlib
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torture import damage, disk, hostile, kills, writers
from torture.subjects import Subjects, make_subjects

Trial = Callable[[Subjects, random.Random, Path], str | None]


@dataclass(frozen=True)
class Group:
    """Trials of one kind; a group of weight 2 gets twice as many as one of weight 1."""

    trial: Trial
    weight: float = 1.0


GROUPS = {
    "kills": Group(kills.trial),
    "signals": Group(kills.stop_trial, 0.5),
    "failing disk": Group(disk.trial, 2),
    "damaged runs": Group(damage.run_trial, 2),
    "damaged finished runs": Group(damage.finished_trial, 2),
    "damaged packs": Group(damage.pack_trial),
    "hostile models": Group(hostile.model_trial, 4),
    "hostile settings": Group(hostile.settings_trial, 3),
    "hostile data": Group(hostile.data_trial, 3),
    "concurrent writers": Group(writers.writers_trial, 0.1),
    "soak": Group(writers.soak_trial, 0.1),
}

_IMPORTED = ("cli.train", "cli.resume", "cli.evaluate", "cli.report", "cli.embed", "cli.export", "cli.data")


def prepare(folder: Path) -> Subjects:
    """Import everything, compile the kernels and make the subjects; trials are forks of this process."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["WISEALE_CACHE"] = str(folder / "subjects" / "cache")
    import torch

    torch.set_num_threads(1)
    for name in (*_IMPORTED, "runs.run", "evaluation.evaluate", "report.directory", "report.write", "models.files"):
        importlib.import_module(f"wiseale.{name}")
    from wiseale import kernels

    kernels.state()
    subjects = make_subjects(folder / "subjects")
    damage.make_references(subjects)
    return subjects
