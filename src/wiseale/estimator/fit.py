"""From an array to a trained model, without a file: what suits the data is chosen, then the one loop runs."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from wiseale import config
from wiseale.config import SettingError, TrainConfig
from wiseale.data.dataset import Array, Dataset, Rows, Scaling
from wiseale.data.defaults import choose_preset, describe, holds_only
from wiseale.data.fingerprint import fingerprint
from wiseale.data.finite import row_blocks
from wiseale.errors import DataError
from wiseale.likelihoods import BernoulliFamily
from wiseale.models.model_file import ModelConfig
from wiseale.networks.model import Model
from wiseale.training.learner import Learner
from wiseale.training.loop import fit
from wiseale.training.plan import held_out_count, resolve
from wiseale.training.records import EpochRecord
from wiseale.training.setup import Work

LEAST_STEPS = 3_000
"""Optimiser steps that ``auto`` trains for at least; it ends once that many have passed without a better loss."""

MOST_STEPS = 30_000
"""Optimiser steps after which ``auto`` ends at the latest, rounded up to whole epochs."""

_QUIET_SECONDS = 2.0

Patience = int | None | Literal["auto"]
History = list[dict[str, Any]]


@dataclass(frozen=True)
class Fitted:
    """A trained model and how it came about.

    Attributes:
        model: on the device it was trained on.
        model_config: its settings.
        chosen: every training setting as it was used.
        history: one flat record per epoch, see :func:`flatten`.
        best_epoch: the epoch whose weights these are.
        summary: what the data was taken for, in one line.
    """

    model: Model
    model_config: ModelConfig
    chosen: TrainConfig
    history: History
    best_epoch: int
    summary: str


def fit_array(
    x: Array,
    asked: TrainConfig,
    *,
    patience: Patience = "auto",
    standardize: Scaling | Literal["auto"] = "auto",
    columns: tuple[str, ...] = (),
    verbose: int = 0,
) -> Fitted:
    """Train on finite numbers (n, features), (n, channels, length) or (n, channels, height, width).

    What ``asked`` leaves at None is chosen: Bernoulli if every value is 0 or 1, else Gaussian on standardised data;
    the network by the number of axes; the length of training by :func:`choose_epochs`.
    """
    dataset = _choose(x, asked, standardize, columns)
    n_held_out = held_out_count(len(x), asked.held_out)
    batch_size = asked.batch_size or min(dataset.preset.batch_size, len(x) - n_held_out)
    steps_per_epoch = max(1, (len(x) - n_held_out) // batch_size)
    max_epochs, wait = choose_epochs(asked.max_epochs, patience, steps_per_epoch, watched=n_held_out > 0)
    chosen = resolve(replace(asked, data="X", max_epochs=max_epochs, patience=wait), dataset)
    work = Work.prepare(chosen, dataset)
    journal = _Memory(chosen, verbose)
    if verbose:
        print(f"{describe(dataset)}; {work.facts.parameters:,} parameters", flush=True)
    fit(work.learner, work.train, work.held_out, work.plan, journal)
    work.learner.finish()
    progress = work.learner.progress
    best = progress.best_epoch if work.learner.best is not None else progress.epoch
    return Fitted(work.learner.model, work.model_config, chosen, journal.history, best, describe(dataset))


def choose_epochs(
    max_epochs: int | None, patience: Patience, steps_per_epoch: int, *, watched: bool
) -> tuple[int, int | None]:
    """Epochs to train at the most, and epochs to wait for a better held-out loss (None: no early stopping).

    With neither given, training ends once :data:`LEAST_STEPS` steps have brought nothing better, and after
    :data:`MOST_STEPS` at the latest; both are rounded up to whole epochs. Where early stopping is off, or nothing is
    held out to watch, it lasts LEAST_STEPS. If ``max_epochs`` is given and the patience is not, it lasts that long.
    """
    least = math.ceil(LEAST_STEPS / steps_per_epoch)
    wait = (least if watched and max_epochs is None else None) if patience == "auto" else patience
    if max_epochs is None:
        max_epochs = math.ceil(MOST_STEPS / steps_per_epoch) if wait is not None else least
    return max_epochs, wait


def flatten(record: EpochRecord) -> dict[str, Any]:
    """An epoch as one flat record: epoch, step, lr, warmup, train_loss, …, held_out_loss, …; nats per observation."""
    flat = {name: getattr(record, name) for name in ("epoch", "step", "lr", "warmup")}
    for split in ("train", "held_out"):
        flat |= {f"{split}_{name}": value for name, value in (getattr(record, split) or {}).items()}
    return flat


def _choose(x: Array, asked: TrainConfig, standardize: Scaling | Literal["auto"], columns: tuple[str, ...]) -> Dataset:
    binary = holds_only(x, 0, 1)
    preset = choose_preset(x.shape, binary=binary)
    preset = replace(
        preset,
        network=asked.network or preset.network,
        likelihood=asked.likelihood or preset.likelihood,
        latent_dim=asked.latent_dim or preset.latent_dim,
    )
    bernoulli = isinstance(config.build("likelihood", preset.likelihood), BernoulliFamily)
    if bernoulli and standardize not in ("auto", "none"):
        raise SettingError("standardize", f"{standardize!r} needs another likelihood than Bernoulli: say gaussian")
    if bernoulli and not all(x[rows].min() >= 0 and x[rows].max() <= 1 for rows in row_blocks(x)):
        raise DataError("a Bernoulli likelihood needs values between 0 and 1: X has others")
    scaling: Scaling = "none" if bernoulli else "columns" if x.ndim == 2 else "global"
    if standardize != "auto":
        scaling = standardize
    if scaling != "none":
        _refuse_overflow(x)
    return Dataset("X", Rows(x), None, preset, fingerprint(x), scaling, columns=columns)


def _refuse_overflow(x: Array) -> None:
    """Squares of the values must be finite in float64."""
    largest = max(float(np.abs(x[rows]).max()) for rows in row_blocks(x)) if x.dtype.kind == "f" else 0.0
    if largest > 1e150:
        raise DataError(f"X holds {largest:g}, too large to be standardised: divide it first")


class _Memory:
    """The loop's journal in memory; speaks now and then if it is to."""

    def __init__(self, chosen: TrainConfig, verbose: int) -> None:
        self.history: History = []
        self._epochs = chosen.max_epochs
        self._verbose = verbose
        self._spoke = -math.inf

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        pass

    def epoch(self, record: EpochRecord) -> None:
        self.history.append(flatten(record))
        if not self._verbose:
            return
        now = time.monotonic()
        if self._verbose > 1 or now - self._spoke >= _QUIET_SECONDS or record.epoch == self._epochs:
            self._spoke = now
            held_out = f", held out {record.held_out['loss']:.4g}" if record.held_out else ""
            print(f"epoch {record.epoch}/{self._epochs}: loss {record.train['loss']:.4g}{held_out}", flush=True)

    def checkpoint(self, learner: Learner) -> None:
        pass

    def interrupted(self) -> bool:
        return False
