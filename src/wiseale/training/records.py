"""What training reports: facts that follow from the settings and the data, and one record per epoch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from wiseale.platform.json_files import parse_table, record
from wiseale.spaces import Scaling


@dataclass(frozen=True)
class RunFacts:
    """Numbers that follow from a run's settings and its data.

    Attributes:
        prior_weight: what the prior is multiplied by, after the warm-up.
        parameters: trainable values of the model and of the objective's own networks.
        standardized: how x is standardised inside the model.
        data_fingerprint: SHA-256 of the data.
    """

    prior_weight: float
    steps_per_epoch: int
    n_train: int
    n_held_out: int
    x_shape: tuple[int, ...]
    parameters: int
    standardized: Scaling
    data_fingerprint: str


@dataclass(frozen=True)
class EpochRecord:
    """The terms of an epoch, nats per observation: one line of metrics.jsonl.

    Attributes:
        epoch: completed epochs, from 1.
        step: completed optimiser steps.
        lr: learning rate of the epoch's last step.
        warmup: warm-up factor of the prior's weight in that step.
        train: means over the epoch's training batches, by term.
        held_out: means over the held-out batches; None where nothing is held out.
    """

    epoch: int
    step: int
    lr: float
    warmup: float
    train: Mapping[str, float]
    held_out: Mapping[str, float] | None

    def to_json(self) -> str:
        """One line, without the line break."""
        return json.dumps({item.name: getattr(self, item.name) for item in fields(EpochRecord)}, allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> Self:
        """The record in a line of metrics.jsonl."""
        return record(cls, parse_table(line))


@dataclass(frozen=True)
class TimedEpochRecord(EpochRecord):
    """An epoch that this process has just finished: ``samples`` rows in ``seconds``.

    After a resumption in the middle of an epoch all three count only what this process did.

    Attributes:
        cpu_seconds: processor time of all its threads, which other programs on the machine hardly change.
    """

    samples: int
    seconds: float
    cpu_seconds: float
