"""A trained model's answers on held-out rows, computed once and shared by all measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from wiseale.config import TrainConfig
from wiseale.data import Dataset, Rows, load_dataset
from wiseale.data.dataset import Array
from wiseale.errors import DataError, RunError
from wiseale.models.model_file import load_model
from wiseale.networks.model import Model
from wiseale.posterior import PointPosterior, Posterior
from wiseale.runs.directory import RunDirectory
from wiseale.training.batches import Batches
from wiseale.training.plan import split_rows

MOST_ROWS = 10_000
BATCH = 512


@dataclass(frozen=True)
class Encoded:
    """A model, rows it was not trained on, and their posteriors.

    Attributes:
        rows: the rows in the network's units.
        posterior: q(z|x) of every row, on the CPU; without a width where the encoder is deterministic.
        sigma_min: the floor of the posterior's standard deviation.
        split: which rows these are.
        factors: what is known of each row.
        circular: period of each factor that wraps around.
    """

    model: Model
    rows: Batches
    posterior: Posterior
    sigma_min: float
    split: str
    factors: Mapping[str, Array]
    circular: Mapping[str, float] = field(default_factory=dict)

    def blocks(self) -> Iterator[tuple[torch.Tensor, slice]]:
        """x in the network's units with the slice of rows it is, block by block."""
        for start in range(0, len(self.rows), BATCH):
            part = slice(start, min(start + BATCH, len(self.rows)))
            yield self.rows.read(torch.arange(part.start, part.stop)), part

    def in_user_units(self, x: torch.Tensor) -> torch.Tensor:
        """x as the user gave it."""
        return self.model.units.inverse(x)


def encode_run(path: Path, data: str | None = None, most: int = MOST_ROWS) -> Encoded:
    """The run's model applied to its dataset's test rows, to its held-out rows where it has none, or to other data."""
    run = RunDirectory.open(path)
    if not run.finished:
        raise RunError(f"{path} has not finished: continue it with `wiseale resume {path}` first")
    record = run.read_record()
    settings = record.settings
    root = Path(settings.data_root) if settings.data_root else None
    dataset = load_dataset(data or settings.data, root)
    model, _ = load_model(run.model)
    if dataset.x_shape != model.x_shape:
        raise DataError(f"{data or settings.data} has rows of shape {dataset.x_shape}, the model takes {model.x_shape}")
    if data is None and dataset.fingerprint != record.facts.data_fingerprint:
        raise DataError(f"{settings.data} has changed since the run was made: give the data to use with --data")
    rows, split = _unseen(dataset, settings, other=data is not None)
    rows = rows.take(np.arange(min(most, len(rows))))
    batches = Batches(rows, units=model.units, seed=settings.seed)
    return Encoded(model, batches, encode(model, batches), model.sigma_min, split, rows.factors, dataset.circular)


@torch.no_grad()
def encode(model: Model, rows: Batches) -> Posterior:
    """q(z|x) of every row, a block at a time."""
    positions = torch.split(torch.arange(len(rows)), BATCH)
    parts = [model.encode(rows.read(block)) for block in positions]
    mu = torch.cat([part.mu for part in parts])
    return Posterior(mu, torch.cat([part.sigma for part in parts])) if model.stochastic else PointPosterior(mu)


def _unseen(dataset: Dataset, settings: TrainConfig, other: bool) -> tuple[Rows, str]:
    if dataset.test is not None:
        return dataset.test, "test"
    if other:
        return dataset.train, "all rows"
    held_out = split_rows(len(dataset.train), settings.held_out, settings.seed)[1]
    if len(held_out) == 0:
        raise DataError("the run held nothing out and its data has no test rows: give some with --data")
    return dataset.train.take(held_out), "held out"
