"""What each training setting is for, as far as comparisons, rows of runs and searches must know it."""

from __future__ import annotations

from dataclasses import fields

from wiseale.config import TrainConfig

ROUNDING = frozenset({"threads", "processes"})
"""Settings of the machine that change the last digits of a result."""

ELSEWHERE = frozenset({"data_root", "device", "checkpoint_every", "logger", "figures"})
"""Settings of the machine or of what else is written: the same run on another machine may have others."""

DATA = frozenset({"data", "columns", "missing", "unseen", "held_out", "held_out_most"})
"""Settings that say which rows are learned from."""

SPECS = frozenset({"objective", "network", "likelihood", "lr_schedule"})
"""Settings that name something registered, with settings of its own."""


def science_settings() -> tuple[str, ...]:
    """The settings that decide a result, in the order of the options."""
    return tuple(item.name for item in fields(TrainConfig) if item.name not in ROUNDING | ELSEWHERE)


def searched_settings() -> tuple[str, ...]:
    """The settings that a search may vary: not which rows are learned from, nor where a run starts."""
    return tuple(name for name in science_settings() if name not in DATA | {"seed", "init_from"})
