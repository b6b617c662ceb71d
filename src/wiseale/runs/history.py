"""What a checkpoint records of the run it belongs to, so that resuming and reporting notice edits and damage."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from wiseale.errors import ModelFileError, RunError
from wiseale.runs.record import RunRecord

FREE = (
    *("data", "data_root", "processes", "threads", "device", "logger", "figures", "checkpoint_every", "init_from"),
    "unseen",  # part of ``data`` by the time it is recorded
)
"""Settings that say where things are or how the work is divided: the experiment is the same with others."""

_LATER = ("held_out_most",)
"""Settings that runs of earlier versions do not have (None); their checkpoints hold a digest without them."""


@dataclass(frozen=True)
class History:
    """The experiment, and the epochs recorded so far.

    Attributes:
        experiment: SHA-256 of the settings that decide the result and of the facts that follow from them.
        metrics_bytes: length of metrics.jsonl when the checkpoint was saved.
        metrics_sha256: checksum of that much of it.
    """

    experiment: str
    metrics_bytes: int
    metrics_sha256: str

    @classmethod
    def of(cls, record: RunRecord, metrics: Path) -> Self:
        """The history of a run at this moment."""
        content = metrics.read_bytes() if metrics.is_file() else b""
        return cls(_experiment(record), len(content), hashlib.sha256(content).hexdigest())

    def check_experiment(self, record: RunRecord, config: Path) -> None:
        """An error where config.json describes another experiment than when the checkpoint was saved."""
        if _experiment(record) != self.experiment:
            raise RunError(
                f"{config} has changed since the run's last checkpoint: restore it, or start another run with "
                f"`wiseale train --config {config} --out ...`"
            )

    def check_metrics(self, metrics: Path) -> None:
        """An error where the epochs recorded before the checkpoint are not those in metrics.jsonl."""
        content = b""
        if metrics.is_file():
            with metrics.open("rb") as file:
                content = file.read(self.metrics_bytes)
        if len(content) != self.metrics_bytes or hashlib.sha256(content).hexdigest() != self.metrics_sha256:
            raise ModelFileError(f"{metrics} is damaged: its epochs are not those the checkpoint was saved after")


def _experiment(record: RunRecord) -> str:
    settings = {name: value for name, value in asdict(record.settings).items() if name not in FREE}
    settings = {name: value for name, value in settings.items() if name not in _LATER or value is not None}
    text = json.dumps([settings, asdict(record.facts)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
