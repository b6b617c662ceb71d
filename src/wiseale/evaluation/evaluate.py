"""Evaluate a finished run on rows it has not seen, part by part, and keep the result beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from wiseale.evaluation import factors, prior_match, reconstruction, separation
from wiseale.evaluation.case import Case, Need, Tick
from wiseale.evaluation.encoded import MOST_ROWS, encode_run
from wiseale.evaluation.record import Evaluation, Findings
from wiseale.platform.atomic_files import write_text
from wiseale.runs.run import Run

NLL_SAMPLES = 64

Progress = Callable[[str, float], None]
"""Called with the title of the part being computed and the fraction of all parts that is done."""


@dataclass(frozen=True)
class Part:
    """Measures that answer one question, the title; ``names`` are null where the model lacks one of the needs."""

    title: str
    measure: Callable[[Case, Tick], Findings]
    needs: tuple[Need, ...] = ()
    names: tuple[str, ...] = ()


_SIGMA: tuple[Need, ...] = ("stochastic encoder",)
_NORMAL: tuple[Need, ...] = ("normal prior",)

PARTS = (
    Part("reconstruction", reconstruction.reconstruction),
    Part("reconstruction", reconstruction.image_quality),
    Part("reconstruction", reconstruction.columns),
    Part("match with the prior", prior_match.prior_match, _SIGMA + _NORMAL, prior_match.PRIOR_MATCH),
    Part("likelihood", prior_match.elbo, _SIGMA, ("elbo",)),
    Part("likelihood", prior_match.likelihood, _SIGMA + _NORMAL, prior_match.NLL),
    Part("use of the units", separation.active_units),
    Part("use of the units", separation.widths, _SIGMA, separation.WIDTHS),
    Part("separation", separation.separation, _SIGMA, separation.SEPARATION),
    Part("compactness", separation.compactness, _SIGMA + _NORMAL, separation.COMPACTNESS),
    Part("compactness", separation.coverage, _NORMAL, separation.COVERAGE),
    Part("smoothness", reconstruction.smoothness),
    Part("disentanglement", factors.disentanglement),
    Part("errors by factor", factors.factor_detail),
)
"""In the order of reading."""


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
    findings, groups, missing = Findings({}), dict[str, list[str]](), case.missing()

    def report(number: int, fraction: float) -> None:
        if progress is not None:
            progress(PARTS[number].title, (number + fraction) / len(PARTS))

    for number, part in enumerate(PARTS):
        report(number, 0.0)
        reasons = [missing[need] for need in part.needs if need in missing]
        new = Findings.none(part.names, reasons[0]) if reasons else part.measure(case, partial(report, number))
        findings |= new
        groups.setdefault(part.title, []).extend(new.measures)
    if progress is not None:
        progress("done", 1.0)
    return findings, {title: names for title, names in groups.items() if names}
