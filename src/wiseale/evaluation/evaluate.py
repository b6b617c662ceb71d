"""Evaluate a finished run on rows it has not seen and keep the result beside it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from wiseale.durable import to_json, write_text
from wiseale.evaluation.encoded import MOST_ROWS, encode_run
from wiseale.evaluation.measures import Measures, divergence, reconstruction, widths
from wiseale.training.run_directory import RunDirectory


@dataclass(frozen=True)
class Evaluation:
    """What was measured, on how many rows of which data, with which seed."""

    data: str
    split: str
    n_eval: int
    seed: int
    measures: Measures


def evaluate(path: Path, data: str | None = None, seed: int = 0, most: int = MOST_ROWS) -> Evaluation:
    """Measure a run; the result is also written to ``evaluation.json`` unless other data is given."""
    encoded = encode_run(path, data, most)
    measures = reconstruction(encoded, seed) | divergence(encoded, seed)
    nats, kl = measures["reconstruction"], measures["kl_posterior_prior"]
    assert nats is not None and kl is not None  # noqa: PT018
    measures["elbo"] = -(nats + kl)
    measures |= widths(encoded)
    run = RunDirectory.open(path)
    result = Evaluation(data or run.read_config()["data"], encoded.split, len(encoded.rows), seed, measures)
    if data is None:
        write_text(run.evaluation, to_json(asdict(result)))
    return result
