"""Evaluate a finished run on rows it has not seen and keep the result beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from wiseale.evaluation.case import Case
from wiseale.evaluation.encoded import MOST_ROWS, encode_run
from wiseale.evaluation.findings import Findings, Measures
from wiseale.evaluation.parts import PARTS
from wiseale.platform.atomic_files import to_json, write_text
from wiseale.runs.directory import RunDirectory

NLL_SAMPLES = 64

Progress = Callable[[str, float], None]
"""Told the title of the part at work and which fraction of all parts is done."""


@dataclass(frozen=True)
class Evaluation:
    """What was measured, on how many rows of which data, with which seed.

    Attributes:
        measures: every measure by name; None where it cannot be taken. ``docs/measures.md`` defines each.
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


def evaluate(
    path: Path,
    data: str | None = None,
    seed: int = 0,
    most: int = MOST_ROWS,
    nll_samples: int = NLL_SAMPLES,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure a run; the result is also written to ``evaluation.json`` unless other data is given."""
    encoded = encode_run(path, data, most)
    found, groups = measure(Case(encoded, seed, nll_samples), progress)
    run = RunDirectory.open(path)
    result = Evaluation(
        data=data or run.read_config()["data"],
        split=encoded.split,
        n_eval=len(encoded.rows),
        seed=seed,
        measures=found.measures,
        reasons=found.reasons,
        groups=groups,
    )
    if data is None:
        write_text(run.evaluation, to_json(asdict(result)))
    return result


def measure(case: Case, progress: Progress | None = None) -> tuple[Findings, dict[str, list[str]]]:
    """Every part in turn; those the model has not got what they need for are null."""
    found, groups = Findings({}), dict[str, list[str]]()
    missing = case.missing()
    for number, part in enumerate(PARTS):
        tick = partial(_tell, progress, part.title, number)
        tick(0.0)
        lacking = [missing[need] for need in part.needs if need in missing]
        new = Findings.none(part.names, lacking[0]) if lacking else part.measure(case, tick)
        found |= new
        groups.setdefault(part.title, []).extend(new.measures)
    if progress is not None:
        progress("done", 1.0)
    return found, {title: names for title, names in groups.items() if names}


def _tell(progress: Progress | None, title: str, number: int, fraction: float) -> None:
    if progress is not None:
        progress(title, (number + fraction) / len(PARTS))
