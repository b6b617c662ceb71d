"""The files of a run directory as typed records, each read and written here and nowhere else."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
import safetensors
import torch

import wiseale
from wiseale import kernels
from wiseale.config import SCIENCE
from wiseale.errors import ModelFileError, RunError
from wiseale.platform.json_files import parse_table, record, to_json
from wiseale.platform.machine import source_commit
from wiseale.training.settings import NAMES, RunFacts, RunSettings

_ROUNDING = ("kernels", "torch", "machine", "threads", "device")

DECIDING = tuple(name for name in NAMES if name in SCIENCE and name != "data")
"""Settings that a resumption must find unchanged; of the data its content must be, whose digest is among the facts."""

FREE = tuple(name for name in NAMES if name not in DECIDING)
"""Settings that say where things are or how the work is divided: the experiment is the same with others."""


@dataclass(frozen=True)
class RunRecord:
    """config.json: the complete settings of a run, and under "resolved" the facts that follow from them."""

    settings: RunSettings
    facts: RunFacts

    def to_json(self) -> str:
        """The text of config.json."""
        return to_json(self.settings.to_values() | {"resolved": asdict(self.facts)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The record in the text of config.json; ValueError or TypeError where it is not one."""
        stored = parse_table(text)
        facts = stored.pop("resolved", None)
        if not isinstance(facts, dict):
            raise ValueError('it has no table "resolved"')
        return cls(RunSettings.from_values(stored), record(RunFacts, facts))

    @property
    def experiment(self) -> str:
        """SHA-256 of the settings that decide the result and of the facts that follow from them."""
        values = self.settings.to_values()
        text = json.dumps([{name: values[name] for name in DECIDING}, asdict(self.facts)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class History:
    """What a checkpoint records of its run, so that resuming and reporting notice edits and damage.

    The experiment (:attr:`RunRecord.experiment`), and the length and checksum of metrics.jsonl when it was saved.
    """

    experiment: str
    metrics_bytes: int
    metrics_sha256: str

    @classmethod
    def of(cls, run: RunRecord, metrics: Path) -> Self:
        """The history of a run at this moment."""
        content = metrics.read_bytes() if metrics.is_file() else b""
        return cls(run.experiment, len(content), hashlib.sha256(content).hexdigest())

    def check_experiment(self, run: RunRecord, config: Path) -> None:
        """An error where config.json describes another experiment than when the checkpoint was saved."""
        if run.experiment != self.experiment:
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


@dataclass(frozen=True)
class Environment:
    """environment.json: the versions, the machine and the data a run was started with.

    ``init_from`` is the digest of the model whose weights the run started from; None where it started from its seed.
    """

    wiseale: str
    python: str
    torch: str
    numpy: str
    safetensors: str
    platform: str
    machine: str
    processes: int
    threads: int
    device: str
    kernels: str
    data_fingerprint: str
    commit: str | None = None
    config_sha256: str = ""
    init_from: str | None = None

    @classmethod
    def now(cls, settings: RunSettings, data_fingerprint: str, init_from: str | None = None) -> Self:
        """The environment of this process."""
        return cls(
            wiseale=wiseale.__version__,
            python=platform.python_version(),
            torch=str(torch.__version__),
            numpy=np.__version__,
            safetensors=safetensors.__version__,
            platform=platform.platform(),
            machine=platform.machine(),
            processes=settings.processes,
            threads=settings.threads,
            device=settings.device,
            kernels=kernels.state(),
            data_fingerprint=data_fingerprint,
            commit=source_commit(),
            init_from=init_from,
        )

    def rounding_changes(self, now: Environment) -> list[str]:
        """One line if kernels, torch, machine, threads or device have changed since, else none.

        Floating-point sums are then rounded differently, so the run cannot end with the bits of an uninterrupted one.
        """
        pairs = {name: (getattr(self, name), getattr(now, name)) for name in _ROUNDING}
        changes = [f"{name}: started with {was}, now {has}" for name, (was, has) in pairs.items() if was != has]
        return [f"{'; '.join(changes)}: the end will not be the same to the last bit"] if changes else []


@dataclass(frozen=True)
class EpochTiming:
    """One line of timing.jsonl: what an epoch cost.

    The memory is the most that the process has held so far, None where the system does not say; the processor time is
    that of rank 0, all threads.
    """

    epoch: int
    seconds: float
    samples_per_second: float
    peak_memory_bytes: int | None
    cpu_seconds_per_thousand_rows: float
