"""From an array to a trained model, without a file: what suits the data is chosen, then the one loop runs."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from wiseale.config import TrainConfig
from wiseale.data.arrays import observations
from wiseale.data.dataset import Array, Dataset
from wiseale.data.defaults import describe, make_dataset, suit
from wiseale.estimator.notebook import Show, epoch_bar, has_bar
from wiseale.models.collapse import collapse_message
from wiseale.models.model_file import ModelConfig
from wiseale.networks.model import Model
from wiseale.spaces import Scaling, TableSpace
from wiseale.training.learner import Learner
from wiseale.training.loop import EpochRecord, fit
from wiseale.training.plan import resolve, torch_threads
from wiseale.training.settings import RunSettings
from wiseale.training.setup import Work

_QUIET_SECONDS = 2.0

History = list[dict[str, Any]]


@dataclass(frozen=True)
class Fitted:
    """A trained model and how it came about.

    Attributes:
        model: on the device it was trained on.
        model_config: its settings.
        settings: every training setting as it was used.
        history: one flat record per epoch, see :func:`flatten`.
        best_epoch: the epoch whose weights these are.
        summary: what the data was taken for, in one line.
        collapse: that the codes have collapsed and what to try, in one line; None where they have not.
    """

    model: Model
    model_config: ModelConfig
    settings: RunSettings
    history: History
    best_epoch: int
    summary: str
    collapse: str | None


def fit_array(
    x: Array,
    asked: TrainConfig,
    *,
    standardize: Scaling | Literal["auto"] = "auto",
    columns: tuple[str, ...] = (),
    cells: TableSpace | None = None,
    verbose: int = 0,
) -> Fitted:
    """Train on finite numbers (n, features), (n, channels, length) or (n, channels, height, width), or on cells.

    What ``asked`` leaves open is chosen as for files, see :mod:`wiseale.data.defaults`.
    """
    x = x if cells is not None and cells.missing else observations(x, "X", columns=columns)
    scaling = None if standardize == "auto" else standardize
    dataset = make_dataset(x, "X", columns=columns, scaling=scaling, cells=cells)
    used = {name: getattr(asked, name) for name in ("network", "likelihood", "latent_dim") if getattr(asked, name)}
    dataset = replace(dataset, preset=replace(dataset.preset, **used))
    dataset = suit(dataset, dataset.preset.likelihood)
    settings = resolve(replace(asked, data="X"), dataset)
    with torch_threads(min(settings.threads, torch.get_num_threads())):  # a limit that the user has set holds
        return _train(settings, dataset, verbose)


def _train(settings: RunSettings, dataset: Dataset, verbose: int) -> Fitted:
    """Train with complete settings, from the initial weights to the measure of how much the codes are used."""
    work = Work.prepare(settings, dataset)
    bar = epoch_bar(settings.max_epochs) if verbose and has_bar() else nullcontext()
    if verbose:
        print(f"{describe(dataset)}; {work.facts.parameters:,} parameters", flush=True)
    with bar as show:
        journal = _Memory(settings.max_epochs, verbose, show)
        fit(work.learner, work.train, work.held_out, work.settings, journal)
    work.learner.finish()
    progress = work.learner.progress
    best = progress.kept_epoch
    use = work.code_use()
    message = collapse_message(use, settings.objective, settings.likelihood) if use else None
    return Fitted(work.learner.model, work.model_config, settings, journal.history, best, describe(dataset), message)


def flatten(record: EpochRecord) -> dict[str, Any]:
    """An epoch as one flat record: epoch, step, lr, warmup, train_loss, …, held_out_loss, …; nats per observation."""
    flat = {name: getattr(record, name) for name in ("epoch", "step", "lr", "warmup")}
    for split in ("train", "held_out"):
        flat |= {f"{split}_{name}": value for name, value in (getattr(record, split) or {}).items()}
    return flat


class _Memory:
    """The loop's journal in memory; speaks now and then if it is to."""

    def __init__(self, epochs: int, verbose: int, show: Show | None = None) -> None:
        self.history: History = []
        self._show = show
        self._epochs = epochs
        self._verbose = verbose
        self._spoke = -math.inf

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        pass

    def epoch(self, record: EpochRecord) -> None:
        self.history.append(flatten(record))
        if self._show is not None:
            self._show(record)
        if not self._verbose or self._show is not None:
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
