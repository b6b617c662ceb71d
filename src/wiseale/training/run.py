"""A run from start or checkpoint to finished model, kept in its directory."""

from __future__ import annotations

import dataclasses
import platform
import resource
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import safetensors
import torch

import wiseale
from wiseale import config
from wiseale.config import SettingError, TrainConfig
from wiseale.data import Dataset, load_dataset
from wiseale.errors import DivergenceError, RunError
from wiseale.modelfile import ModelConfig, load_model, save_model
from wiseale.networks.model import Model, parameter_count, seeded
from wiseale.objectives import make_objective
from wiseale.training.batches import Batches, fit_units
from wiseale.training.checkpoint import Learner, load_newest, save_checkpoint
from wiseale.training.loop import EpochRecord, fit
from wiseale.training.plan import Plan, make_plan, resolve, split_rows
from wiseale.training.randomness import derive_seed
from wiseale.training.run_directory import RunDirectory, append_line, refuse_existing
from wiseale.training.tensorboard import also_logged


class Display(Protocol):
    """What a person sees of a run."""

    def loading(self, done: int, total: int) -> None:
        """Data is being packed or rendered."""

    def started(self, facts: Mapping[str, Any]) -> None:
        """Training begins, or goes on."""

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        """Some steps were made."""

    def epoch(self, record: EpochRecord) -> None:
        """An epoch ended."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended: its directory, and the signal that interrupted it, if any."""

    path: Path
    signal: int | None = None


def start(asked: TrainConfig, out: Path, display: Display) -> Outcome:
    """Train a new run in ``out``; anything wrong with the request is an error before anything is written."""
    refuse_existing(out)
    dataset = load_dataset(asked.data, Path(asked.data_root) if asked.data_root else None, display.loading)
    resolved = resolve(asked, dataset)
    _use_threads(resolved)
    work = Work.prepare(resolved, dataset)
    take_weights(work.learner.model, resolved.init_from)
    complete = dataclasses.asdict(resolved) | {"resolved": work.facts}
    run = RunDirectory.create(out, complete, _environment(resolved, dataset.fingerprint))
    with run.locked():
        return work.carry_out(run, display)


def resume(path: Path, display: Display) -> Outcome:
    """Continue a run from its newest checkpoint, or from step 0 where it has none; a finished run is left alone."""
    run = RunDirectory.open(path)
    with run.locked():
        if run.finished:
            return Outcome(run.path)
        stored = run.read_config()
        facts = stored.pop("resolved", {})
        resolved = config.from_values(TrainConfig, stored)
        dataset = load_dataset(resolved.data, Path(resolved.data_root) if resolved.data_root else None)
        if dataset.fingerprint != facts.get("data_fingerprint"):
            raise RunError(f"{resolved.data} is not the data this run was started with: its content has changed")
        _use_threads(resolved)
        work = Work.prepare(resolved, dataset)
        if load_newest(run.checkpoints, work.learner) is None:
            take_weights(work.learner.model, resolved.init_from)
        run.cut_after(work.learner.progress.epoch)
        return work.carry_out(run, display)


def take_weights(model: Model, init_from: str | None) -> None:
    """Give a model the weights of a finished run's, or of a model file's; its own units stay."""
    if init_from is None:
        return
    source, _ = load_model(Path(init_from))
    source.units, source.prior = model.units, None
    given, own = source.state_dict(), model.state_dict()
    for name in sorted(given.keys() | own.keys()):
        shapes = [list(state[name].shape) if name in state else "none" for state in (given, own)]
        if shapes[0] != shapes[1]:
            problem = f"{init_from} does not fit this run's network: {name} is {shapes[0]} there and {shapes[1]} here"
            raise SettingError("init_from", problem)
    model.load_state_dict(given)


def _use_threads(resolved: TrainConfig) -> None:
    assert resolved.threads
    torch.set_num_threads(resolved.threads)


@dataclass
class Work:
    """Everything the loop needs, built from resolved settings and data."""

    learner: Learner
    train: Batches
    held_out: Batches | None
    plan: Plan
    made_of: ModelConfig
    facts: dict[str, Any]

    @classmethod
    def prepare(cls, resolved: TrainConfig, dataset: Dataset) -> Work:
        """A learner at step 0 and its batches; nothing outside is changed."""
        assert resolved.network and resolved.likelihood and resolved.latent_dim  # noqa: PT018
        train_rows, held_rows = split_rows(len(dataset.train), resolved.held_out, resolved.seed)
        plan = make_plan(resolved)
        objective = make_objective(resolved.objective).at_scale(plan.batch_size, len(train_rows))
        made_of = ModelConfig(
            network=resolved.network,
            likelihood=resolved.likelihood,
            objective=resolved.objective,
            x_shape=dataset.x_shape,
            latent_dim=resolved.latent_dim,
            standardized=dataset.scaling != "none",
            stochastic=objective.stochastic,
            reading=dataset.train.reading,
            columns=dataset.columns,
            data_fingerprint=dataset.fingerprint,
        )
        with seeded(derive_seed(resolved.seed, "weights")):
            model = made_of.build()
            called = objective.build(dataset.x_shape, resolved.latent_dim)
        model.units = fit_units(dataset, train_rows)
        learner = Learner.fresh(model, called, plan.lr)
        learner.modules.to(resolved.device)
        facts = {
            "prior_weight": objective.effective_weight(plan.batch_size, len(train_rows)),
            "steps_per_epoch": len(train_rows) // plan.batch_size,
            "n_train": len(train_rows),
            "n_held_out": len(held_rows),
            "x_shape": list(dataset.x_shape),
            "parameters": parameter_count(learner.modules),
            "standardized": dataset.scaling,
            "data_fingerprint": dataset.fingerprint,
        }

        def batches(rows: npt.NDArray[np.int64]) -> Batches:
            return Batches(dataset.train, rows, units=model.units, device=resolved.device, seed=resolved.seed)

        return cls(learner, batches(train_rows), batches(held_rows) if len(held_rows) else None, plan, made_of, facts)

    def carry_out(self, run: RunDirectory, display: Display) -> Outcome:
        """Train to the end or to an interruption, then write the model."""
        display.started(run.read_config())
        with _Recorder(run, display) as recorder, also_logged(recorder, run) as journal:
            try:
                complete = fit(self.learner, self.train, self.held_out, self.plan, journal)
            except DivergenceError as error:
                kept = max((p.name for p in run.checkpoints.glob("[0-9]*")), default=None)
                where = f"the last good checkpoint is {run.checkpoints / kept}" if kept else "no checkpoint was due yet"
                raise DivergenceError(f"{error} ({where})") from None
        if not complete:
            return Outcome(run.path, recorder.signal)
        save_checkpoint(run.checkpoints, self.learner)
        save_model(run.model, self.learner.finish(), self.made_of)
        return Outcome(run.path)


class _Recorder:
    """The loop's journal on disk; while it is open, SIGINT and SIGTERM ask the loop to save and return."""

    def __init__(self, run: RunDirectory, display: Display) -> None:
        self._run = run
        self._display = display
        self._before: dict[int, Any] = {}
        self.signal: int | None = None

    def __enter__(self) -> _Recorder:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        signal.signal(number, self._before[number])  # a second one ends the process at once

    def interrupted(self) -> bool:
        return self.signal is not None

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        self._display.step(epoch, step_in_epoch, steps_per_epoch, terms)

    def epoch(self, record: EpochRecord) -> None:
        told = dataclasses.asdict(record)
        seconds, samples = told.pop("seconds"), told.pop("samples")
        append_line(self._run.metrics, told)
        timing = {
            "epoch": record.epoch,
            "seconds": round(seconds, 6),
            "samples_per_second": round(samples / seconds, 3),
            "peak_memory_bytes": _peak_memory_bytes(),
        }
        append_line(self._run.timing, timing)
        self._display.epoch(record)

    def checkpoint(self, learner: Learner) -> None:
        save_checkpoint(self._run.checkpoints, learner)


def _peak_memory_bytes() -> int:
    """The most memory this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _environment(resolved: TrainConfig, data_fingerprint: str) -> dict[str, Any]:
    return {
        "wiseale": wiseale.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "safetensors": safetensors.__version__,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "threads": resolved.threads,
        "device": resolved.device,
        "data_fingerprint": data_fingerprint,
    }
