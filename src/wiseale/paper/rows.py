"""One row per evaluated run: what was trained, on what, from which commit, and what was measured; kept as CSV."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wiseale import registry
from wiseale.config import ROLES, parse_spec
from wiseale.errors import RunError
from wiseale.experiments.comparison import Result
from wiseale.platform.atomic_files import write_text
from wiseale.report.write import csv_text
from wiseale.training.batches import MOST_HELD_OUT, held_out_count
from wiseale.training.settings import RunSettings

RUNS = "runs.csv"

_USUAL = {"max_grad_norm": None, "patience": None, "precision": "fp32", "init_from": None}
"""Further training settings of a condition, with the values that they have in the paper's experiments."""
_HELD_OUT = 0.05


@dataclass(frozen=True)
class Condition:
    """What runs must have in common to be averaged or compared: the data, the network and the training settings.

    Not in it: the system with its settings (objective and ``prior_warmup``, of which a system has
    one) and the seed, in which compared runs differ on purpose; threads, processes and device, which change only the
    rounding; version and commit, because runs made over several days would then never be averaged. All but those of the
    machine are kept in the row.

    Attributes:
        scale: what `wiseale reproduce` was asked for.
        control: how the runs differ on purpose from the experiment's own (``"init-torch"``); empty for its own runs.
        rows: training rows of the data, those held out included.
        init: initial weights of the network.
        n_eval: rows evaluated on.
        data_fingerprint: the beginning of the data's SHA-256.
        further: rows held out, early stopping, gradient clipping, precision and first weights, where they differ from
            those of the paper's experiments (``"patience=5, precision=bf16"``). Read from the row's ``config``, it has
            no column.
    """

    experiment: str
    scale: str
    control: str
    data: str
    rows: int
    epochs: int
    batch_size: int
    latent_dim: int
    network: str
    init: str
    likelihood: str
    lr: float
    lr_schedule: str
    n_eval: int
    data_fingerprint: str
    further: str = field(default="", repr=False)

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
    """One evaluated run.

    Attributes:
        objective: the system's spec, as it was asked for.
        weight: what the prior is multiplied by, per observation.
        seconds: training time of all epochs.
        commit: Git commit the run was started from; empty if it is unknown.
        config: the settings that decide the run's result, as JSON.
        measures: every measure that has a value.
    """

    condition: Condition
    system: str
    objective: str
    weight: float
    prior_warmup: float
    seed: int
    seconds: float
    version: str
    commit: str
    config: str
    measures: Mapping[str, float]


_CONDITION = tuple(item.name for item in dataclasses.fields(Condition) if item.name != "further")
_OWN = tuple(item.name for item in dataclasses.fields(RunRow) if item.name not in ("condition", "measures"))
_FIXED = ("experiment", "system", *_CONDITION[1:], *_OWN[1:])  # columns before the measures


def row_of(result: Result, experiment: str, scale: str, control: str = "") -> RunRow:
    """The row of a run of `wiseale reproduce`."""
    record, environment = result.directory.read_record(), result.directory.read_environment()
    settings, facts, evaluation = record.settings, record.facts, result.evaluation
    rows = facts.n_train + facts.n_held_out
    kept = _kept_config(settings)
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


def _kept_config(settings: RunSettings) -> str:
    values = {name: value for name, value in settings.to_values().items() if ROLES[name] == "science"}
    places = {name: without_folders(values[name]) for name in ("data", "init_from") if values[name] is not None}
    return json.dumps(values | places, ensure_ascii=False, sort_keys=True)


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
