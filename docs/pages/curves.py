"""Training curves of runs, one line per epoch, kept as CSV."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wiseale.errors import RunError
from wiseale.experiments.comparison import Result
from wiseale.paper.rows import Condition
from wiseale.platform.atomic_files import write_text
from wiseale.report.document import csv_text
from wiseale.training.loop import EpochRecord

TERMS = ("reconstruction", "kl_posterior_prior", "elbo")


@dataclass(frozen=True)
class Curve:
    """The training curve of a run; ``condition`` is the key of its condition."""

    condition: str
    system: str
    seed: int
    epochs: tuple[EpochRecord, ...]


def curve_of(result: Result, condition: Condition) -> Curve:
    """The curve of a run."""
    return Curve(condition.key, result.system.name, result.seed, tuple(result.metrics))


def write_curves(path: Path, curves: Sequence[Curve]) -> None:
    """Write one line per epoch of every curve."""
    lines: list[tuple[object, ...]] = [("condition", "system", "seed", "epoch", *TERMS)]
    for curve in sorted(curves, key=lambda c: (c.condition, c.system, c.seed)):
        for epoch in curve.epochs:
            terms = [f"{epoch.train[term]:.6g}" if term in epoch.train else "" for term in TERMS]
            lines.append((curve.condition, curve.system, curve.seed, epoch.epoch, *terms))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, csv_text(lines))


def read_curves(path: Path) -> list[Curve]:
    """What :func:`write_curves` wrote; none where there is no such file."""
    if not path.exists():
        return []
    epochs: dict[tuple[str, str, int], list[EpochRecord]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for number, line in enumerate(csv.DictReader(file), 2):
            try:
                key = (line["condition"], line["system"], int(line["seed"]))
                train = {term: float(line[term]) for term in TERMS if line[term]}
                record = EpochRecord(int(line["epoch"]), 0, 0.0, 1.0, train, None)
            except (KeyError, ValueError, TypeError) as error:
                raise RunError(f"{path}, line {number} is not an epoch of a curve: {error}") from None
            epochs.setdefault(key, []).append(record)
    return [Curve(*key, tuple(records)) for key, records in epochs.items()]


def merge_curves(*lots: Sequence[Curve]) -> list[Curve]:
    """All curves; of equal runs the last one given is kept."""
    return list({(c.condition, c.system, c.seed): c for lot in lots for c in lot}.values())
