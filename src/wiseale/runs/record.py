"""The files of a run directory as typed records, each read and written here and nowhere else."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Literal, Self

from wiseale.config import TrainConfig, from_values
from wiseale.platform.atomic_files import to_json
from wiseale.training.records import RunFacts


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
        stored = _table(text)
        facts = stored.pop("resolved", None)
        if not isinstance(facts, dict):
            raise ValueError('it has no table "resolved"')
        facts["x_shape"] = tuple(facts.get("x_shape", ()))
        return cls(from_values(TrainConfig, stored), RunFacts(**facts))


@dataclass(frozen=True)
class Environment:
    """environment.json: the versions, the machine and the data a run was started with.

    Attributes:
        kernels: state of the compiled kernels.
        data_fingerprint: SHA-256 of the data.
        commit: Git commit of the source, with "-dirty" after uncommitted changes; None for an installed package.
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

    def to_json(self) -> str:
        """The text of environment.json."""
        return to_json(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The record in the text of environment.json; ValueError or TypeError where it is not one."""
        return cls(**_table(text))

    def rounding_changes(self, now: Environment) -> list[str]:
        """One line if kernels, torch or machine have changed since, else none.

        Floating-point sums are then rounded differently, so the run cannot end with the bits of an uninterrupted one.
        """
        pairs = {name: (getattr(self, name), getattr(now, name)) for name in ("kernels", "torch", "machine")}
        changes = [f"{name}: started with {was}, now {has}" for name, (was, has) in pairs.items() if was != has]
        return [f"{'; '.join(changes)}: the end will not be the same to the last bit"] if changes else []


@dataclass(frozen=True)
class EpochTiming:
    """One line of timing.jsonl: what an epoch cost."""

    epoch: int
    seconds: float
    samples_per_second: float
    peak_memory_bytes: int | None

    def to_json(self) -> str:
        """One line, without the line break."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Self:
        """The record in a line of timing.jsonl."""
        return cls(**json.loads(line))


def _table(text: str) -> dict[str, Any]:
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError("it must hold a table")
    return values
