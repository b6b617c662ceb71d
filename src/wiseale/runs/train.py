"""Trains a run, from its start or a checkpoint to the finished model, in its run directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from wiseale import config
from wiseale.config import SCIENCE, SPECS, SettingError, TrainConfig
from wiseale.data import Dataset, load_dataset
from wiseale.data.defaults import constant_columns, describe_columns
from wiseale.errors import DivergenceError, RunError
from wiseale.models.collapse import CodeUse
from wiseale.models.model_file import model_digest, model_directory, save_model
from wiseale.platform.atomic_files import sha256
from wiseale.processes.collectives import batch_statistics, broadcast
from wiseale.processes.group import process_group
from wiseale.processes.world import World, from_environment, report_once
from wiseale.runs.checkpoint import load_checkpoint, load_newest, saved_checkpoints
from wiseale.runs.directory import RunDirectory, refuse_existing
from wiseale.runs.loggers import logged
from wiseale.runs.record import FREE, Environment, History, RunRecord
from wiseale.runs.recorder import Display, Recorder
from wiseale.training.learner import Learner
from wiseale.training.loop import fit
from wiseale.training.plan import choose_device, default_threads, resolve
from wiseale.training.settings import RunSettings
from wiseale.training.setup import Work, take_weights


@dataclass(frozen=True)
class Outcome:
    """How a run ended, and the signal that interrupted it, if any.

    ``dataset`` is set where this process read it, ``code_use`` where it finished the run; ``kept`` says in words which
    epoch's weights were kept and why, where held-out rows decided.
    """

    path: Path
    signal: int | None = None
    dataset: Dataset | None = field(default=None, repr=False)
    code_use: CodeUse | None = None
    kept: str | None = None


def start(asked: TrainConfig, out: Path, display: Display) -> Outcome:
    """Train a new run in ``out``; anything wrong with the request is an error before anything is written.

    With several processes each rank calls this; only rank 0 writes files and prints. Started by ``torchrun`` with
    ``--max-restarts``, which repeats the command after a failure, it resumes the run that is there.
    """
    world = from_environment()
    if os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0") != "0" and (out / "config.json").is_file():
        _refuse_other_run(asked, out)
        return resume(out, display)
    if world.is_rank_0:
        refuse_existing(out)
    with report_once(world):
        asked = _as_rank(asked, world)
    with process_group(world, choose_device(asked.device)) as group:
        with group.one_per_machine_first():
            dataset = load_dataset(asked.data, Path(asked.data_root) if asked.data_root else None, display.loading)
        settings = resolve(asked, dataset)
        torch.set_num_threads(settings.threads)
        work = Work.prepare(settings, dataset, world)
        take_weights(work.learner.model, settings.init_from)
        record = RunRecord(settings, work.facts)
        if not world.is_rank_0:
            return _run(work, record, RunDirectory(out.absolute()), display)
        environment = Environment.now(settings, dataset.fingerprint, _initial_digest(settings))
        run = RunDirectory.create(out, record, environment)
        with run.locked():
            return replace(_run(work, record, run, display, _columns(dataset)), dataset=dataset)


def resume(path: Path, display: Display) -> Outcome:
    """Continue a run from its newest checkpoint, or from step 0 where it has none; a finished run is left alone.

    The number of processes may differ from before; the display then notes that sums are rounded differently.
    """
    world = from_environment()
    run = RunDirectory.open(path)
    before = run.read_record()
    if run.finished:  # before the lock, which a folder that may only be read has not got
        return Outcome(run.path)
    settings = replace(before.settings, processes=world.size)
    with process_group(world, settings.device) as group, run.locked() if world.is_rank_0 else nullcontext():
        if run.finished:
            return Outcome(run.path)
        with group.one_per_machine_first():
            dataset = load_dataset(settings.data, Path(settings.data_root))
        if dataset.fingerprint != before.facts.data_fingerprint:
            raise RunError(f"{settings.data} is not the data this run was started with: its content has changed")
        torch.set_num_threads(settings.threads)
        work = Work.prepare(settings, dataset, world)
        started = run.read_environment()
        if not _load_newest(run, before, work.learner, world):
            if _initial_digest(settings) != started.init_from:
                raise RunError(
                    f"{settings.init_from} is not the model this run was started from: restore it, or start again"
                )
            take_weights(work.learner.model, settings.init_from)
        if world.is_rank_0:
            run.cut_after(work.learner.progress.epoch)
        notes = _columns(dataset)[:1]
        if started.config_sha256 != sha256(run.config):  # after a checkpoint edits of the experiment are refused
            notes.append(f"{run.config} has been edited: {', '.join(FREE)} are taken as it says now")
        if (size := before.settings.processes) != world.size:
            notes.append(
                f"started with {size} process{'es' * (size > 1)}, continued with {world.size}: the same batches and "
                "noise, but sums are rounded differently, so the end will not be the same to the last bit"
            )
        notes += started.rounding_changes(Environment.now(settings, dataset.fingerprint))
        return _run(work, RunRecord(settings, work.facts), run, display, notes)


def _refuse_other_run(asked: TrainConfig, out: Path) -> None:
    """An error where the run in ``out`` is plainly not the one asked for, but one that was there before.

    Every setting that decides the result and was asked for is compared; of the data, its content is when the run is
    resumed.
    """
    there = RunDirectory.open(out).read_record().settings
    stored = there.to_values()
    for name in SCIENCE:
        wanted = getattr(asked, name)
        if name == "data" or wanted in (None, "auto"):
            continue
        if name == "init_from":
            wanted = os.path.abspath(wanted)
        if (config.build(SPECS[name], wanted) if name in SPECS else wanted) != getattr(there, name):
            raise RunError(
                f"{out} holds a run with {name} {stored[name]}, and {wanted} was asked for: choose another --out"
            )


def _as_rank(asked: TrainConfig, world: World) -> TrainConfig:
    """The settings of each process; the number of processes asked for must be the number that was started."""
    if asked.processes not in (None, world.size):
        problem = f"is {asked.processes}, and {world.size} were started: leave it out, or start as many"
        raise SettingError("processes", problem)
    if asked.threads == "auto" and world.size > 1:
        raise SettingError("threads", f"auto tries one process at a time, and {world.size} were started: give a number")
    threads = asked.threads or (default_threads(world.local_size) if world.size > 1 else None)
    return replace(asked, processes=world.size, threads=threads)


def _initial_digest(settings: RunSettings) -> str | None:
    """The digest of the model whose weights the run starts from; None where it starts from its seed."""
    return model_digest(model_directory(Path(settings.init_from))) if settings.init_from else None


def _load_newest(run: RunDirectory, record: RunRecord, learner: Learner, world: World) -> bool:
    """Load the newest checkpoint that rank 0 finds undamaged, on all ranks; False where there is none."""

    def check(history: History) -> None:
        history.check_experiment(record, run.config)
        history.check_metrics(run.metrics)

    newest = load_newest(run.checkpoints, learner, check) if world.is_rank_0 else None
    step = torch.tensor(-1 if newest is None else int(newest.name))
    broadcast([step], world)
    if not world.is_rank_0 and int(step) >= 0:
        load_checkpoint(run.checkpoints / f"{int(step):06d}", learner)
    return int(step) >= 0


def _run(work: Work, record: RunRecord, run: RunDirectory, display: Display, notes: Sequence[str] = ()) -> Outcome:
    """Train to the end or to an interruption, then write the model; the notes are shown first."""
    is_rank_0 = work.world.is_rank_0
    logger = logged(run, record.settings) if is_rank_0 else nullcontext()
    with Recorder(run, record, display, work.world) as recorder, logger as recorder.logger:
        recorder.started([*notes, *_notes(work)])
        try:
            complete = fit(work.learner, work.train, work.held_out, work.settings, recorder, work.world)
        except DivergenceError as error:
            error.in_run = True
            recorder.wait()
            error.checkpoint = next(iter(saved_checkpoints(run.checkpoints)), None)
            raise
    if not complete:
        return Outcome(run.path, recorder.signal)
    recorder.finish(work.learner)
    if is_rank_0:
        save_model(run.model, work.learner.finish(), work.model_config)
    return Outcome(run.path, code_use=work.code_use() if is_rank_0 else None, kept=_kept(work))


def _kept(work: Work) -> str | None:
    progress = work.learner.progress
    if work.learner.best is None:
        return None
    best = f"epoch {progress.best_epoch}" if progress.best_epoch else "the start, before any training"
    last = "no lower one followed up to epoch {}" if progress.stopped else "epoch {} was the last"
    return f"kept: the weights of {best}, where the held-out loss was lowest; {last.format(progress.epoch)}"


def _columns(dataset: Dataset) -> list[str]:
    """What the columns of a table were taken for, and which are constant."""
    kinds, constant = describe_columns(dataset), constant_columns(dataset)
    advice = "; to colour pictures by one, not learning from it: --columns NAME:label"
    notes = [f"columns: {kinds}{'' if dataset.train.factors else advice}"] if kinds else []
    return [*notes, constant] if constant else notes


def _notes(work: Work) -> list[str]:
    """What a user may wonder about when training starts."""
    notes, settings = [], work.settings
    if settings.patience is not None and settings.patience < settings.max_epochs:
        notes.append(
            f"training ends when {settings.patience:,} epochs in a row have not lowered the held-out loss, or after "
            f"{settings.max_epochs:,}"
        )
    if work.world.size > 1 and batch_statistics(work.learner.modules):
        rows = settings.batch_size // work.world.size
        notes.append(
            f"batch normalisation: statistics are those of each process's own {rows} rows, so the gradient is not that "
            "of one process; the model keeps the first process's"
        )
    return notes
