"""The description of a session that the page reads first, as JSON; numbers in bulk follow as binary columns.

It holds the measures in each run's evaluation.json side by side, and differences between systems over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wiseale.errors import WiseAleError
from wiseale.evaluation.record import Evaluation
from wiseale.experiments.comparison import COMPARISON, System, read_comparison
from wiseale.experiments.intervals import Estimate, estimate
from wiseale.explorer.contours import RADII, SHARES, Contours, Polylines
from wiseale.explorer.session import MOST_CODES, PRIOR_DRAWS, Session, ShownRun
from wiseale.figures.words import data_in_words
from wiseale.runs.directory import read

_COLOURS = 64  # entries of a colour scale


def manifest(session: Session) -> dict[str, Any]:
    """Everything but the codes, colour values, pictures and contours."""
    shown, observation, rows = session.shown, session.observation, session.thumbnail_rows
    thumbnail_shape = observation.thumbnails(session.x(rows[:1])).shape[1:] if len(rows) else ()
    return {
        "data": data_in_words(shown.data),
        "split": shown.split,
        "n": len(shown.rows),
        "available": shown.available,
        "originals": not shown.codes,
        "numbers": shown.numbers.tolist() if (shown.numbers != np.arange(len(shown.numbers))).any() else None,
        "observation": asdict(observation),
        "thumbnails": {"rows": rows.tolist(), "shape": thumbnail_shape},
        "colourings": [
            {name: value for name, value in vars(colouring).items() if name != "values"}
            for colouring in session.colourings
        ],
        "scales": {name: _scale(name) for name in ("viridis", "twilight")},
        "radii": RADII,
        "shares": SHARES,
        "most_codes": MOST_CODES,
        "runs": [_run(session, number) for number in range(len(session.runs))],
        "measures": [_measure(measure) for measure in measures_of([run.opened.path for run in session.runs])],
    }


def geometry(run: ShownRun) -> bytes:
    """float32 little-endian: mu (n, d_z), sigma (n, d_z) where there is one, error (n,), prior draws (…, d_z)."""
    codes = run.codes
    parts = [codes.mu, codes.sigma, codes.error, run.draw_prior()]
    return b"".join(np.ascontiguousarray(part, "<f4").tobytes() for part in parts if part is not None)


def contour_lines(contours: Contours) -> dict[str, Any]:
    """Polylines by share, each a flat list of x and y in turn."""
    return {"aggregate": _flat(contours.aggregate), "prior": contours.prior and _flat(contours.prior)}


def _run(session: Session, number: int) -> dict[str, Any]:
    run = session.runs[number]
    config, plane = run.codec.model_config, run.principal
    return {
        "name": run.opened.name,
        "objective": config.objective,
        "network": config.network,
        "latent_dim": run.latent_dim,
        "stochastic": run.codes.sigma is not None,
        "own_prior": run.codec.model.prior is not None,
        "prior_draws": PRIOR_DRAWS,
        "spread": run.codes.mu.std(axis=0).round(4).tolist(),
        "trained_on": session.shown.trained_on[number],
        "principal": plane and {"directions": plane.directions.tolist(), "shares": plane.shares},
    }


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        "name": measure.name,
        "question": measure.question,
        "values": [value if value is not None and math.isfinite(value) else None for value in measure.values],
        "differences": [
            None
            if difference is None or difference.half_width is None
            else {"mean": difference.mean, "half_width": difference.half_width, "seeds": difference.n}
            for difference in measure.differences
        ],
    }


def _flat(lines: Polylines) -> list[list[list[float]]]:
    return [[np.round(line, 3).ravel().tolist() for line in of_share] for of_share in lines]


def _scale(name: str) -> list[list[int]]:
    from matplotlib import colormaps

    colours = colormaps[name](np.linspace(0, 1, _COLOURS))
    return np.rint(colours[:, :3] * 255).astype(int).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Measure:
    """One measure: its value in every run (None where it is not defined), and differences from the first run."""

    name: str
    question: str
    values: tuple[float | None, ...]
    differences: tuple[Estimate | None, ...]


def measures_of(runs: Sequence[Path | None]) -> list[Measure]:
    """Every measure of the runs, or models of the zoo, that were evaluated, in the order of reading.

    A difference is the mean over seeds of (system of that run − system of the first run), paired by seed, with a 95 %
    interval. It exists where both runs belong to one comparison with two or more evaluated seeds.
    """
    files = [run / "evaluation.json" if run else None for run in runs]
    evaluations = [read(Evaluation.from_json, file) if file and file.is_file() else None for file in files]
    questions = {name: title for one in evaluations if one for title, names in one.groups.items() for name in names}
    systems = [_system_of(run) for run in runs]
    measures = []
    for name, question in questions.items():
        values = tuple(one.measures.get(name) if one else None for one in evaluations)
        if any(value is not None for value in values):
            differences = tuple(_difference(systems[0], system, name) for system in systems)
            measures.append(Measure(name, question, values, differences))
    return measures


@dataclass(frozen=True)
class _Evaluated:
    """A system of a comparison, and its evaluations by seed."""

    out: Path
    system: System
    by_seed: dict[int, Evaluation]


def _system_of(run: Path | None) -> _Evaluated | None:
    """The system that a run in a comparison's directory is of."""
    if run is None or len(run.absolute().parents) < 3:
        return None
    out = run.absolute().parents[2]
    if not (out / COMPARISON).is_file():
        return None
    try:
        comparison = read_comparison(out)
    except WiseAleError:
        return None
    for system in comparison.systems:
        if system.folder == run.absolute().parent.name:
            results = (result for result in comparison.results() if result.system == system)
            return _Evaluated(out, system, {result.seed: result.evaluation for result in results})
    return None


def _difference(first: _Evaluated | None, other: _Evaluated | None, name: str) -> Estimate | None:
    if first is None or other is None or first.out != other.out or first.system == other.system:
        return None
    pairs = [
        (first.by_seed[seed].measures.get(name), other.by_seed[seed].measures.get(name))
        for seed in sorted(first.by_seed.keys() & other.by_seed.keys())
    ]
    differences = [float(b) - float(a) for a, b in pairs if a is not None and b is not None]
    return estimate(differences) if len(differences) > 1 else None
