"""The description of a session that the page reads first, as JSON; numbers in bulk follow as binary columns."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from wiseale.experiments.intervals import Estimate
from wiseale.explorer.contours import RADII, SHARES, Contours, Polylines
from wiseale.explorer.measures import Measure
from wiseale.explorer.session import MOST_CODES, PRIOR_DRAWS, Session, ShownRun
from wiseale.figures.words import data_in_words

_COLOURS = 64  # entries of a colour scale


def manifest(session: Session) -> dict[str, Any]:
    """Everything but the codes, colour values, pictures and contours."""
    shown, observation = session.shown, session.observation
    return {
        "data": data_in_words(shown.data),
        "split": shown.split,
        "n": len(shown.rows),
        "available": shown.available,
        "originals": not shown.codes,
        "numbers": shown.numbers.tolist() if (shown.numbers != np.arange(len(shown.numbers))).any() else None,
        "observation": {
            "kind": observation.kind,
            "shape": observation.shape,
            "columns": [asdict(column) for column in observation.columns],
            "low": observation.low,
            "high": observation.high,
        },
        "thumbnails": {"rows": session.thumbnail_rows.tolist(), "shape": _thumbnail_shape(session)},
        "colourings": [
            {"name": c.name, "source": c.source, "classes": c.classes, "period": c.period, "dates": c.dates}
            for c in session.colourings
        ],
        "scales": {name: _scale(name) for name in ("viridis", "twilight")},
        "radii": RADII,
        "shares": SHARES,
        "most_codes": MOST_CODES,
        "runs": [_run(session, number) for number in range(len(session.runs))],
        "measures": [_measure(measure) for measure in session.measures],
    }


def geometry(run: ShownRun) -> bytes:
    """float32 little-endian: mu (n, d_z), sigma (n, d_z) where there is one, error (n,), prior draws (…, d_z)."""
    codes = run.codes
    parts = [codes.mu, codes.sigma, codes.error, run.prior_draws]
    return b"".join(np.ascontiguousarray(part, "<f4").tobytes() for part in parts if part is not None)


def contour_lines(contours: Contours) -> dict[str, Any]:
    """Polylines by share, each a flat list of x and y in turn."""
    return {
        "aggregate": _flat(contours.aggregate),
        "prior": None if contours.prior is None else _flat(contours.prior),
    }


def _run(session: Session, number: int) -> dict[str, Any]:
    run = session.runs[number]
    config, principal = run.codec.model_config, run.principal
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
        "principal": None
        if principal is None
        else {"directions": principal.plane.directions.tolist(), "shares": principal.shares},
    }


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        "name": measure.name,
        "question": measure.question,
        "values": [_finite(value) for value in measure.values],
        "differences": [_estimate(difference) for difference in measure.differences],
    }


def _estimate(difference: Estimate | None) -> dict[str, Any] | None:
    if difference is None or difference.half_width is None:
        return None
    return {"mean": difference.mean, "half_width": difference.half_width, "seeds": difference.n}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _thumbnail_shape(session: Session) -> tuple[int, ...]:
    if not len(session.thumbnail_rows):
        return ()
    return session.observation.thumbnails(session.x(session.thumbnail_rows[:1])).shape[1:]


def _flat(lines: Polylines) -> list[list[list[float]]]:
    return [[np.round(line, 3).ravel().tolist() for line in of_share] for of_share in lines]


def _scale(name: str) -> list[list[int]]:
    from matplotlib import colormaps

    colours = colormaps[name](np.linspace(0, 1, _COLOURS))
    return np.rint(colours[:, :3] * 255).astype(int).tolist()  # type: ignore[no-any-return]
