"""Evaluate a finished run on rows it has not seen and keep the result beside it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from wiseale.evaluation.case import Case
from wiseale.evaluation.encoded import MOST_ROWS, encode_run
from wiseale.evaluation.findings import Findings
from wiseale.evaluation.parts import PARTS
from wiseale.evaluation.record import Evaluation
from wiseale.platform.atomic_files import write_text
from wiseale.runs.run import Run

NLL_SAMPLES = 64

Progress = Callable[[str, float], None]
"""Called with the title of the part being computed and the fraction of all parts that is done."""


def evaluate(
    path: Path,
    data: str | None = None,
    seed: int = 0,
    most: int = MOST_ROWS,
    nll_samples: int = NLL_SAMPLES,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate a run; without other data the result is also written to its ``evaluation.json``."""
    run = Run.open(path, data)
    encoded = encode_run(run, most=most)
    findings, groups = measure(Case(encoded, seed, nll_samples), progress)
    result = Evaluation(
        data=data or run.settings.data,
        split=encoded.split,
        n_eval=len(encoded.rows),
        seed=seed,
        measures=findings.measures,
        reasons=findings.reasons,
        groups=groups,
    )
    if data is None:
        write_text(run.evaluation, result.to_json())
    return result


def measure(case: Case, progress: Progress | None = None) -> tuple[Findings, dict[str, list[str]]]:
    """Compute every part; parts whose requirements the model lacks are null."""
    findings, groups = Findings({}), dict[str, list[str]]()
    missing = case.missing()
    for number, part in enumerate(PARTS):
        tick = partial(_report, progress, part.title, number)
        tick(0.0)
        lacking = [missing[need] for need in part.needs if need in missing]
        new = Findings.none(part.names, lacking[0]) if lacking else part.measure(case, tick)
        findings |= new
        groups.setdefault(part.title, []).extend(new.measures)
    if progress is not None:
        progress("done", 1.0)
    return findings, {title: names for title, names in groups.items() if names}


def _report(progress: Progress | None, title: str, number: int, fraction: float) -> None:
    if progress is not None:
        progress(title, (number + fraction) / len(PARTS))
