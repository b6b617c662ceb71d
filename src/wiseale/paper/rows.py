"""One row per evaluated run, kept as CSV, and the evidence in rows: values of every seed by system and measure."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wiseale import registry
from wiseale.config import ROLES, parse_spec
from wiseale.errors import RunError
from wiseale.experiments.comparison import Result
from wiseale.models.collapse import CodeUse
from wiseale.platform.atomic_files import write_text
from wiseale.report.document import csv_text
from wiseale.training.batches import MOST_HELD_OUT, held_out_count

RUNS = "runs.csv"

_USUAL = {"max_grad_norm": None, "patience": None, "precision": "fp32", "init_from": None}
"""Further training settings of a condition, with the values that they have in the paper's experiments."""
_HELD_OUT = 0.05


@dataclass(frozen=True)
class Condition:
    """What runs must have in common to be averaged or compared: the data, the network and the training settings.

    Not in it: the system (objective and ``prior_warmup``) and the seed, in which compared runs differ on purpose;
    threads, processes and device, which change only the rounding; version and commit, because runs made over several
    days would then never be averaged.
    """

    experiment: str
    scale: str
    control: str  # how the runs differ on purpose from the experiment's own ("init-torch"); empty for its own runs
    data: str
    rows: int  # for training, those held out included
    epochs: int
    batch_size: int
    latent_dim: int
    network: str
    init: str
    likelihood: str
    lr: float
    lr_schedule: str
    n_eval: int
    data_fingerprint: str  # the beginning of its SHA-256
    further: str = field(default="", repr=False)  # unusual settings in the row's config: "patience=5, precision=bf16"

    @property
    def key(self) -> str:
        """Twelve letters that stand for all of it in other files."""
        return hashlib.sha256((repr(self) + self.further).encode()).hexdigest()[:12]

    def __str__(self) -> str:
        size = f"{self.rows:,} rows × {self.epochs} epochs, batch {self.batch_size}, {self.latent_dim} units"
        network = f"{self.network.partition(':')[0]} ({self.init} weights)"
        further = f", {self.further}" if self.further else ""
        return f"{self.data}: {size}, {network}{further}, {self.n_eval:,} rows evaluated"


@dataclass(frozen=True)
class RunRow:
    """One evaluated run."""

    condition: Condition
    system: str
    objective: str  # the spec, as it was asked for
    weight: float  # what the prior is multiplied by, per observation
    prior_warmup: float
    seed: int
    seconds: float  # training time of all epochs
    version: str
    commit: str  # the run was started from; empty if it is unknown
    config: str  # the settings that decide the run's result, as JSON
    measures: Mapping[str, float]  # that have a value


_CONDITION = tuple(item.name for item in dataclasses.fields(Condition) if item.name != "further")
_OWN = tuple(item.name for item in dataclasses.fields(RunRow) if item.name not in ("condition", "measures"))
_FIXED = ("experiment", "system", *_CONDITION[1:], *_OWN[1:])  # columns before the measures


def row_of(result: Result, experiment: str, scale: str, control: str = "") -> RunRow:
    """The row of a run of `wiseale reproduce`."""
    record, environment = result.directory.read_record(), result.directory.read_environment()
    settings, facts, evaluation = record.settings, record.facts, result.evaluation
    rows = facts.n_train + facts.n_held_out
    science = {name: value for name, value in settings.to_values().items() if ROLES[name] == "science"}
    science |= {name: without_folders(science[name]) for name in ("data", "init_from") if science[name] is not None}
    kept = json.dumps(science, ensure_ascii=False, sort_keys=True)
    condition = Condition(
        experiment=experiment,
        scale=scale,
        control=control,
        data=without_folders(settings.data),
        rows=rows,
        epochs=settings.max_epochs,
        batch_size=settings.batch_size,
        latent_dim=settings.latent_dim,
        network=settings.spec("network"),
        init=settings.network.init,
        likelihood=settings.spec("likelihood"),
        lr=settings.lr,
        lr_schedule=settings.spec("lr_schedule"),
        n_eval=evaluation.n_eval,
        data_fingerprint=facts.data_fingerprint[:12],
        further=_further(kept, rows),
    )
    measures = evaluation.measures | result.training_measures
    return RunRow(
        condition=condition,
        system=result.system.name,
        objective=result.system.objective,
        weight=facts.prior_weight,
        prior_warmup=settings.prior_warmup,
        seed=result.seed,
        seconds=sum(timing.seconds for timing in result.directory.read_timing()),
        version=environment.wiseale,
        commit=environment.commit or "",
        config=kept,
        measures={name: float(value) for name, value in measures.items() if value is not None},
    )


def without_folders(data: str) -> str:
    """A dataset's spec with the names of folders and files in place of their paths.

    >>> without_folders("celeba:crop=178,folder=/home/me/portraits"), without_folders("/home/me/sales.csv")
    ('celeba:crop=178,folder=portraits', 'sales.csv')
    """
    name, values = parse_spec(data)
    if name not in registry.DATASETS:
        return Path(data).name
    items = (f"{key}={Path(value).name if '/' in value else value}" for key, value in values.items())
    return f"{name}:{','.join(items)}" if values else name


def _further(kept: str, rows: int) -> str:
    """The further settings in a row's config that differ from the paper's experiments'; those it lacks do not.

    A part held out and a largest number of rows matter by the number of rows that they hold out.
    """
    settings = json.loads(kept)
    if not isinstance(settings, dict):
        raise ValueError("its config is not a JSON object")
    values = {name: settings.get(name, usual) for name, usual in _USUAL.items()}
    held_out = held_out_count(rows, settings.get("held_out", _HELD_OUT), settings.get("held_out_most") or MOST_HELD_OUT)
    unusual = [f"{held_out} rows held out"] if held_out != held_out_count(rows, _HELD_OUT) else []
    return ", ".join([*unusual, *(f"{name}={value}" for name, value in values.items() if value != _USUAL[name])])


def merge(*lots: Iterable[RunRow]) -> list[RunRow]:
    """All rows in a fixed order; of runs equal in condition, system, settings and seed the last one given is kept."""
    kept = {(r.condition, r.system, r.objective, r.prior_warmup, r.seed): r for lot in lots for r in lot}
    experiments = list(registry.EXPERIMENTS)

    def place(row: RunRow) -> tuple[int, str, str, str, str, float, int]:
        c = row.condition
        at = experiments.index(c.experiment) if c.experiment in experiments else len(experiments)
        return at, c.scale, c.control, str(c), row.system, row.weight, row.seed

    return sorted(kept.values(), key=place)


def write_rows(path: Path, rows: Sequence[RunRow]) -> None:
    """Write the rows as CSV; measures of some rows only are empty in the others."""
    columns = [*_FIXED, *sorted({name for row in rows for name in row.measures})]
    lines = [columns]
    for row in rows:
        cells = {name: getattr(row.condition, name) for name in _CONDITION} | {n: getattr(row, n) for n in _OWN}
        cells |= {name: f"{value:.9g}" for name, value in row.measures.items()}
        lines.append([cells.get(name, "") for name in columns])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, csv_text(lines))


def read_rows(path: Path) -> list[RunRow]:
    """The rows in a CSV file that :func:`write_rows` wrote; an error names the line that is not one."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if missing := [name for name in _FIXED if name not in (reader.fieldnames or ())]:
                raise RunError(f"{path} has no column {missing[0]!r}: write it again with `wiseale reproduce`")
            return [_row(line, f"{path}, line {number}") for number, line in enumerate(reader, 2)]
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from None


def _row(line: Mapping[str, str], where: str) -> RunRow:
    try:
        values = {name: _value(Condition, name, line[name]) for name in _CONDITION}
        condition = Condition(**values, further=_further(line["config"], int(line["rows"])))
        measures = {name: float(value) for name, value in line.items() if name not in _FIXED and value}
        return RunRow(condition, measures=measures, **{name: _value(RunRow, name, line[name]) for name in _OWN})
    except (ValueError, TypeError) as error:
        raise RunError(f"{where} is not a run's row: {error}") from None


def _value(cls: type, name: str, text: str) -> Any:
    kind = cls.__annotations__[name]  # "int", "float" or "str": annotations are not evaluated
    return int(text) if kind == "int" else float(text) if kind == "float" else text


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
