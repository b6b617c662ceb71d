"""Which settings a search varies, and between which values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wiseale import config
from wiseale.config import SEARCHED, SPECS, SettingError, TrainConfig
from wiseale.registry import did_you_mean

if TYPE_CHECKING:
    from optuna.trial import Trial

DEFAULT = ("lr=1e-4..5e-3", "batch_size=32|64|128|256", "latent_dim=2|4|8|16")
"""Searched unless the setting is given."""


@dataclass(frozen=True)
class Varied:
    """One setting of the search (``lr``, ``objective.prior_weight``): a range or a list of values, as written."""

    name: str
    low: str = ""
    high: str = ""
    choices: tuple[str, ...] = ()

    def suggest(self, trial: Trial) -> str:
        """The trial's value, as text that a setting is read from."""
        if self.choices:
            return str(trial.suggest_categorical(self.name, self.choices))
        low, high = (float(config.convert(self.name, end, float)) for end in (self.low, self.high))
        if low == int(low) and high == int(high) and "." not in self.low + self.high:
            return str(trial.suggest_int(self.name, int(low), int(high), log=low >= 1 and high >= 10 * low))
        return repr(trial.suggest_float(self.name, low, high, log=low > 0))


def parse_space(texts: Sequence[str]) -> tuple[Varied, ...]:
    """Read ``lr=1e-4..1e-2`` (a range) and ``batch_size=32|64`` (a list); an error names what cannot be searched."""
    varied: dict[str, Varied] = {}
    for text in texts:
        name, _, values = text.partition("=")
        name = name.strip().replace("-", "_")
        if not name or not values:
            raise SettingError("space", f"{text!r} is not of the form lr=1e-4..1e-2 or batch_size=32|64")
        _require_known(name)
        low, dots, high = values.partition("..")
        if dots:
            ends = [config.convert("space", end, float) for end in (low, high)]
            if not ends[0] < ends[1]:
                raise SettingError("space", f"{text!r}: the range must go from the smaller number to the larger")
            varied[name] = Varied(name, low, high)
        else:
            varied[name] = Varied(name, choices=tuple(value.strip() for value in values.split("|")))
    return tuple(varied.values())


def default_space(given: Sequence[str]) -> tuple[Varied, ...]:
    """The settings searched where the user named none: those of :data:`DEFAULT` that were not given."""
    return tuple(varied for varied in parse_space(DEFAULT) if varied.name not in given)


def settings_of_trial(base: TrainConfig, values: Mapping[str, str]) -> TrainConfig:
    """The settings of one trial: the common ones with these values in their place."""
    changed: dict[str, Any] = {}
    for name, value in values.items():
        option, dot, key = name.partition(".")
        if dot:
            before = changed.get(option) or getattr(base, option)
            if before is None:
                raise SettingError(option, f"must be given where {name} is searched")
            kind, settings = config.parse_spec(before)
            written = ",".join(f"{k}={v}" for k, v in (settings | {key: value}).items())
            changed[option] = f"{kind}:{written}"
        else:
            changed[option] = value
    return dataclasses.replace(base, **changed)


def _require_known(name: str) -> None:
    option, dot, _ = name.partition(".")
    if option not in SEARCHED or (dot and option not in SPECS):
        near, known = did_you_mean(option, SEARCHED), ", ".join(SEARCHED)
        raise SettingError("space", f"{name!r} cannot be searched{near} (known: {known}, objective.KEY, …)")
