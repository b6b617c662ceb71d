"""Measurements that the claims are judged by: the values of every seed, by experiment, system and measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wiseale.errors import RunError
from wiseale.experiments.paper.run_rows import Condition, RunRow
from wiseale.models.collapse import CodeUse

Values = Mapping[str, Mapping[str, Sequence[float]]]
"""System name → measure → one value per seed."""


def collapsed_seeds(measures: Mapping[str, Sequence[float]]) -> int:
    """In how many seeds a system's codes say next to nothing, given its values of every measure."""
    units = measures.get("active_units", ())
    information = measures.get("mutual_information", ())
    known = information if len(information) == len(units) else [None] * len(units)
    return sum(CodeUse(round(count), nats).collapsed for count, nats in zip(units, known, strict=True))


@dataclass(frozen=True)
class Evidence:
    """Values by experiment (``"sine"``, …), all of one experiment measured under the same conditions.

    Attributes:
        controls: values by experiment and control, of runs that differ on purpose from the experiment's own.
        conditions: by experiment, in words: rows, epochs, network and whatever else distinguishes the runs.
        smoke: whether these are rehearsals, which decide nothing.
    """

    values: Mapping[str, Values] = field(default_factory=dict)
    controls: Mapping[tuple[str, str], Values] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)
    smoke: bool = False

    def of(self, experiment: str, control: str = "") -> Values:
        """What was measured in a control's runs, and in the experiment's own where there is no such control."""
        return self.controls.get((experiment, control)) or self.values.get(experiment, {})


def conditions_of(rows: Sequence[RunRow], scale: str, control: str = "") -> dict[str, list[Condition]]:
    """The conditions at a scale by experiment, the one with the most runs first."""
    counts = Counter(row.condition for row in rows if (row.condition.scale, row.condition.control) == (scale, control))
    found: dict[str, list[Condition]] = {}
    for condition, _ in counts.most_common():
        found.setdefault(condition.experiment, []).append(condition)
    return found


def values_of(rows: Sequence[RunRow], condition: Condition) -> Values:
    """The values of every system under one condition; one name for two settings is refused."""
    found: dict[str, dict[str, list[float]]] = {}
    settings: dict[str, tuple[str, float]] = {}
    for row in rows:
        if row.condition != condition:
            continue
        setting = (row.objective, row.prior_warmup)
        if settings.setdefault(row.system, setting) != setting:
            raise RunError(f"{row.system!r} names two settings, {settings[row.system]} and {setting}: rename one")
        for measure, value in row.measures.items():
            found.setdefault(row.system, {}).setdefault(measure, []).append(value)
    return found


def evidence_of(rows: Sequence[RunRow], scale: str) -> Evidence:
    """The evidence at one scale, one condition per experiment: where there are several, the one with the most runs.

    Runs of other conditions are left out, never averaged with these.
    """
    chosen = {experiment: found[0] for experiment, found in conditions_of(rows, scale).items()}
    controls = {
        (experiment, control): values_of(rows, found[0])
        for control in sorted({row.condition.control for row in rows} - {""})
        for experiment, found in conditions_of(rows, scale, control).items()
    }
    values = {experiment: values_of(rows, condition) for experiment, condition in chosen.items()}
    words = {experiment: str(condition) for experiment, condition in chosen.items()}
    return Evidence(values, controls, words, smoke=scale == "smoke")
