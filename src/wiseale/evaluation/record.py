"""Measures by name, with the reasons for missing ones, and the evaluation that evaluation.json holds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from wiseale.config import TrainConfig
from wiseale.errors import counted
from wiseale.models.card import Provenance
from wiseale.models.collapse import ENOUGH_ROWS, CodeUse
from wiseale.platform.json_files import parse_table, record, sealed, unseal
from wiseale.runs.directory import read
from wiseale.runs.run import Run

Measures = dict[str, float | int | None]


@dataclass(frozen=True)
class Findings:
    """The measures of one part of an evaluation: every name has a number, or None and a reason."""

    measures: Measures
    reasons: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, numbers: Mapping[str, float | int]) -> Findings:
        """The given numbers; a number that is not finite becomes None, because JSON has no such numbers."""
        reasons = {name: f"came out as {number}" for name, number in numbers.items() if not math.isfinite(number)}
        return cls({name: None if name in reasons else number for name, number in numbers.items()}, reasons)

    @classmethod
    def none(cls, names: Iterable[str], reason: str) -> Findings:
        """Names that cannot be measured here, and why."""
        names = tuple(names)
        return cls(dict.fromkeys(names), dict.fromkeys(names, reason))

    def __or__(self, other: Findings) -> Findings:
        return Findings(self.measures | other.measures, self.reasons | other.reasons)


@dataclass(frozen=True)
class Evaluation:
    """What was measured, on how many rows of which data, with which seed.

    Attributes:
        measures: every measure by name; None where it cannot be computed. ``docs/measures.md`` defines each.
        reasons: why a measure is None, by name.
        groups: names of the measures by the question they answer, in the order of reading.
    """

    data: str
    split: str
    n_eval: int
    seed: int
    measures: Measures
    reasons: dict[str, str] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)

    @property
    def code_use(self) -> CodeUse | None:
        """How much the codes say about x; None where there were too few rows, as for the information in them."""
        units, information = (self.measures.get(name) for name in ("active_units", "mutual_information"))
        return None if units is None else CodeUse(int(units), information if self.n_eval >= ENOUGH_ROWS else None)

    def to_json(self) -> str:
        """The text of evaluation.json."""
        return sealed(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The evaluation in the text of evaluation.json; ValueError or TypeError where it is not one."""
        return record(cls, unseal(parse_table(text)))


def provenance(run: Run) -> Provenance:
    """How the run's model was trained and, where the run has been evaluated, what was measured."""
    facts, path = run.facts, run.evaluation
    settings = TrainConfig(**run.settings.to_values())
    trained = Provenance(settings, facts.prior_weight, facts.n_train, facts.n_held_out)
    if not path.exists():
        return trained
    evaluation = read(Evaluation.from_json, path)
    rows = f"{counted(evaluation.n_eval, 'row')} ({evaluation.split})"
    return dataclasses.replace(trained, measures=evaluation.measures, evaluated_on=rows)
