"""A run from start or checkpoint to finished model, kept in its directory."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors
import torch

import wiseale
from wiseale import config
from wiseale.config import SettingError, TrainConfig
from wiseale.data import Dataset, load_dataset
from wiseale.distributed import spread
from wiseale.errors import DivergenceError, RunError
from wiseale.joining import joined
from wiseale.modelfile import ModelConfig, load_model, save_model
from wiseale.native import native
from wiseale.networks.model import Model, parameter_count, seeded
from wiseale.objectives import make_objective
from wiseale.ranks import ALONE, World, from_environment, told_once
from wiseale.training.averaging import batch_statistics
from wiseale.training.batches import Batches, fit_units
from wiseale.training.checkpoint import Learner, load_checkpoint, load_newest, save_checkpoint
from wiseale.training.loop import fit
from wiseale.training.plan import Plan, choose_device, default_threads, make_plan, resolve, split_rows
from wiseale.training.randomness import derive_seed
from wiseale.training.recorder import Display, Recorder
from wiseale.training.run_directory import RunDirectory, refuse_existing
from wiseale.training.tensorboard import also_logged


@dataclass(frozen=True)
class Outcome:
    """How a run ended: its directory, and the signal that interrupted it, if any."""

    path: Path
    signal: int | None = None


def start(asked: TrainConfig, out: Path, display: Display) -> Outcome:
    """Train a new run in ``out``; anything wrong with the request is an error before anything is written.

    With several processes each calls this, and the first of them alone writes and speaks.
    """
    world = from_environment()
    if world.leads:
        refuse_existing(out)
    with told_once(world):
        asked = _as_rank(asked, world)
    with joined(world, choose_device(asked.device)) as group:
        with group.one_first():
            dataset = load_dataset(asked.data, Path(asked.data_root) if asked.data_root else None, display.loading)
        resolved = resolve(asked, dataset)
        _use_threads(resolved)
        work = Work.prepare(resolved, dataset, world)
        take_weights(work.learner.model, resolved.init_from)
        if not world.leads:
            return work.carry_out(RunDirectory(out.absolute()), display)
        complete = dataclasses.asdict(resolved) | {"resolved": work.facts}
        run = RunDirectory.create(out, complete, _environment(resolved, dataset.fingerprint))
        with run.locked():
            return work.carry_out(run, display)


def resume(path: Path, display: Display) -> Outcome:
    """Continue a run from its newest checkpoint, or from step 0 where it has none; a finished run is left alone.

    With another number of processes than before it goes on too, and says so: sums are then rounded differently.
    """
    world = from_environment()
    run = RunDirectory.open(path)
    stored = run.read_config()
    facts = stored.pop("resolved", {})
    before = config.from_values(TrainConfig, stored)
    resolved = dataclasses.replace(before, processes=world.size)
    with joined(world, resolved.device) as group, run.locked() if world.leads else nullcontext():
        if run.finished:
            return Outcome(run.path)
        with group.one_first():
            dataset = load_dataset(resolved.data, Path(resolved.data_root) if resolved.data_root else None)
        if dataset.fingerprint != facts.get("data_fingerprint"):
            raise RunError(f"{resolved.data} is not the data this run was started with: its content has changed")
        _use_threads(resolved)
        work = Work.prepare(resolved, dataset, world)
        if not _load_newest(run, work.learner, world):
            take_weights(work.learner.model, resolved.init_from)
        if world.leads:
            run.cut_after(work.learner.progress.epoch)
        return work.carry_out(run, display, _other_size(before.processes or 1, world.size))


def _as_rank(asked: TrainConfig, world: World) -> TrainConfig:
    """The settings of each process of this world; a number asked for must be the number there is."""
    if asked.processes not in (None, world.size):
        problem = f"is {asked.processes}, and {world.size} were started: leave it out, or start as many"
        raise SettingError("processes", problem)
    if asked.threads == "auto" and world.size > 1:
        raise SettingError("threads", f"auto tries one process at a time, and {world.size} were started: give a number")
    threads = asked.threads or default_threads(world.local_size)
    return dataclasses.replace(asked, processes=world.size, threads=threads)


def _load_newest(run: RunDirectory, learner: Learner, world: World) -> bool:
    """Bring the learners of all ranks to the checkpoint the first one finds good; False where there is none."""
    found = load_newest(run.checkpoints, learner) if world.leads else None
    step = torch.tensor(-1 if found is None else int(found.name))
    spread([step], world)
    if not world.leads and int(step) >= 0:
        load_checkpoint(run.checkpoints / f"{int(step):06d}", learner)
    return int(step) >= 0


def _other_size(before: int, now: int) -> list[str]:
    if before == now:
        return []
    return [
        f"started with {before} {_processes(before)}, continued with {now}: the same batches and noise, "
        "but sums are rounded differently, so the end will not be the same to the last bit"
    ]


def _processes(count: int) -> str:
    return "process" if count == 1 else "processes"


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
    assert isinstance(resolved.threads, int)
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
    world: World

    @classmethod
    def prepare(cls, resolved: TrainConfig, dataset: Dataset, world: World = ALONE) -> Work:
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
            return Batches(
                dataset.train,
                rows,
                units=model.units,
                device=resolved.device,
                seed=resolved.seed,
                copies=world.local_size,
            )

        held_out = batches(held_rows) if len(held_rows) else None
        return cls(learner, batches(train_rows), held_out, plan, made_of, facts, world)

    def carry_out(self, run: RunDirectory, display: Display, notes: Sequence[str] = ()) -> Outcome:
        """Train to the end or to an interruption, then write the model; the notes are shown first."""
        if self.world.leads:
            display.started(run.read_config() | {"processes": self.world.size, "notes": [*notes, *self._notes()]})
        with Recorder(run, display, self.world) as recorder, also_logged(recorder, run, self.world) as journal:
            try:
                complete = fit(self.learner, self.train, self.held_out, self.plan, journal, self.world)
            except DivergenceError as error:
                kept = max((p.name for p in run.checkpoints.glob("[0-9]*")), default=None)
                where = f"the last good checkpoint is {run.checkpoints / kept}" if kept else "no checkpoint was due yet"
                raise DivergenceError(f"{error} ({where})") from None
        if not complete:
            return Outcome(run.path, recorder.signal)
        if self.world.leads:
            save_checkpoint(run.checkpoints, self.learner)
            save_model(run.model, self.learner.finish(), self.made_of)
        return Outcome(run.path)

    def _notes(self) -> list[str]:
        if self.world.size == 1 or not batch_statistics(self.learner.modules):
            return []
        rows = self.plan.batch_size // self.world.size
        return [
            f"batch normalisation: statistics are those of each process's own {rows} rows, so the gradient is not that "
            "of one process; the model keeps the first process's"
        ]


def _environment(resolved: TrainConfig, data_fingerprint: str) -> dict[str, Any]:
    return {
        "wiseale": wiseale.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "safetensors": safetensors.__version__,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processes": resolved.processes,
        "threads": resolved.threads,
        "device": resolved.device,
        "kernels": native().state,
        "data_fingerprint": data_fingerprint,
    }
