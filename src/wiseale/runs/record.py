"""The files of a run directory as typed records, each read and written here and nowhere else."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Literal, Self

from wiseale.config import TrainConfig, from_values
from wiseale.platform.json_files import parse_table, record, to_json
from wiseale.training.records import RunFacts

_ROUNDING = ("kernels", "torch", "machine", "threads", "device")


@dataclass(frozen=True)
class RunRecord:
    """config.json: the complete settings of a run, and under "resolved" the facts that follow from them."""

    settings: TrainConfig
    facts: RunFacts

    def to_json(self) -> str:
        """The text of config.json."""
        return to_json(dataclasses.asdict(self.settings) | {"resolved": dataclasses.asdict(self.facts)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The record in the text of config.json; ValueError or TypeError where it is not one."""
        stored = parse_table(text)
        facts = stored.pop("resolved", None)
        if not isinstance(facts, dict):
            raise ValueError('it has no table "resolved"')
        return cls(from_values(TrainConfig, stored), record(RunFacts, facts))


@dataclass(frozen=True)
class Environment:
    """environment.json: the versions, the machine and the data a run was started with.

    Attributes:
        kernels: state of the compiled kernels.
        data_fingerprint: SHA-256 of the data.
        commit: Git commit of the source, with "-dirty" after uncommitted changes; None for an installed package.
        config_sha256: checksum of config.json; None in runs of earlier versions.
        init_from: digest of the model whose weights the run started from; None where it started from its seed.
    """

    wiseale: str
    python: str
    torch: str
    numpy: str
    safetensors: str
    platform: str
    machine: str
    processes: int | None
    threads: int | Literal["auto"] | None
    device: str
    kernels: str
    data_fingerprint: str
    commit: str | None = None
    config_sha256: str | None = None
    init_from: str | None = None

    def to_json(self) -> str:
        """The text of environment.json."""
        return to_json(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The record in the text of environment.json; ValueError or TypeError where it is not one."""
        return record(cls, parse_table(text))

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

    Attributes:
        cpu_seconds_per_thousand_rows: processor time of rank 0, all threads; None in runs of earlier versions.
    """

    epoch: int
    seconds: float
    samples_per_second: float
    peak_memory_bytes: int | None
    cpu_seconds_per_thousand_rows: float | None = None

    def to_json(self) -> str:
        """One line, without the line break."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Self:
        """The record in a line of timing.jsonl."""
        return record(cls, parse_table(line))
