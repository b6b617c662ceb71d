"""Measurements that the claims are judged by: the values of every seed, by experiment, system and measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wiseale.errors import RunError
from wiseale.models.collapse import CodeUse
from wiseale.paper.rows import Condition, RunRow

Values = Mapping[str, Mapping[str, Sequence[float]]]
"""System name → measure → one value per seed."""


def collapsed_seeds(measures: Mapping[str, Sequence[float]]) -> int:
    """In how many seeds a system's codes say next to nothing, given its values of every measure."""
    units = measures.get("active_units", ())
    information = measures.get("mutual_information", ())
    nats = information if len(information) == len(units) else [None] * len(units)
    return sum(CodeUse(round(count), one).collapsed for count, one in zip(units, nats, strict=True))


@dataclass(frozen=True)
class Evidence:
    """Values by experiment (``"sine"``, …), all of one experiment measured under the same conditions.

    ``controls`` are values by experiment and control, of runs that differ on purpose from the experiment's own. A
    ``smoke`` reproduction is a rehearsal, which decides nothing.
    """

    values: Mapping[str, Values] = field(default_factory=dict)
    controls: Mapping[tuple[str, str], Values] = field(default_factory=dict)
    smoke: bool = False

    def of(self, experiment: str, control: str = "") -> Values:
        """What was measured in a control's runs, and in the experiment's own where there is no such control."""
        return self.controls.get((experiment, control)) or self.values.get(experiment, {})


def conditions_of(rows: Sequence[RunRow], scale: str, control: str = "") -> dict[str, list[Condition]]:
    """The conditions at a scale by experiment, the one with the most runs first."""
    counts = Counter(row.condition for row in rows if (row.condition.scale, row.condition.control) == (scale, control))
    conditions: dict[str, list[Condition]] = {}
    for condition, _ in counts.most_common():
        conditions.setdefault(condition.experiment, []).append(condition)
    return conditions


def by_system(rows: Sequence[RunRow], condition: Condition) -> dict[str, list[RunRow]]:
    """The rows of every system under one condition; one name for two settings is refused."""
    systems: dict[str, list[RunRow]] = {}
    for row in rows:
        if row.condition == condition:
            systems.setdefault(row.system, []).append(row)
    for name, runs in systems.items():
        settings = list(dict.fromkeys((row.objective, row.prior_warmup) for row in runs))
        if len(settings) > 1:
            raise RunError(f"{name!r} names two settings, {settings[0]} and {settings[1]}: rename one")
    return systems


def values_of(rows: Sequence[RunRow], condition: Condition) -> Values:
    """The values of every system under one condition; one name for two settings is refused."""
    values: dict[str, dict[str, list[float]]] = {}
    for name, runs in by_system(rows, condition).items():
        for row in runs:
            for measure, value in row.measures.items():
                values.setdefault(name, {}).setdefault(measure, []).append(value)
    return values


def evidence_of(rows: Sequence[RunRow], scale: str) -> Evidence:
    """The evidence at one scale: of each experiment, the condition with the most runs, never averaged with others."""
    controls = {
        (experiment, control): values_of(rows, conditions[0])
        for control in sorted({row.condition.control for row in rows})
        for experiment, conditions in conditions_of(rows, scale, control).items()
    }
    own = {experiment: controls.pop((experiment, "")) for experiment, control in list(controls) if not control}
    return Evidence(own, controls, smoke=scale == "smoke")
