"""Checkpoints: weights, optimiser state and progress, enough to continue bit for bit. No pickle."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from wiseale.errors import ModelFileError, RunError
from wiseale.models.model_file import header_of, misfit, read_header, read_tensors, write_tensors
from wiseale.platform.atomic_files import read_manifest, verify_directory, verify_file, write_directory
from wiseale.platform.json_files import parse_table, read_text, record, to_json
from wiseale.runs.record import History
from wiseale.training.learner import Learner, Progress, snapshot

WEIGHTS, OPTIMIZER, BEST, STATE = "weights.safetensors", "optimizer.safetensors", "best.safetensors", "state.json"
_KEPT = 2


class Snapshot(NamedTuple):
    """A learner's state at one step, copied, so that it can be written while training goes on."""

    step: int
    files: Mapping[str, Mapping[str, Tensor]]
    state: Mapping[str, Any]

    @classmethod
    def of(cls, learner: Learner, history: History) -> Snapshot:
        """A copy of weights, optimiser state and progress; the best weights are never changed and need none."""
        files = {WEIGHTS: snapshot(learner.modules), OPTIMIZER: _optimizer_tensors(learner.optimizers)}
        files |= {} if learner.best is None else {BEST: learner.best}
        state = asdict(learner.progress) | {"history": asdict(history)}
        return cls(learner.progress.step, files, state)


def save_checkpoint(directory: Path, saved: Snapshot) -> Path:
    """Write ``directory/NNNNNN`` for the snapshot's step and keep the newest two."""
    target = directory / f"{saved.step:06d}"

    def fill(temporary: Path) -> None:
        for name, tensors in saved.files.items():
            write_tensors(temporary / name, tensors)
        (temporary / STATE).write_text(to_json(saved.state), encoding="utf-8")

    write_directory(target, fill)
    for old in saved_checkpoints(directory)[_KEPT:]:
        shutil.rmtree(old)
    return target


def load_newest(directory: Path, learner: Learner, check: Callable[[History], None]) -> Path | None:
    """Load the newest usable checkpoint into a learner; damaged ones are skipped with a warning.

    ``check`` raises ModelFileError where a checkpoint's history is not that of the run. A run whose checkpoints are
    intact while its history is damaged is refused: starting again from step 0 would discard them.
    """
    intact = False
    for path in saved_checkpoints(directory):
        try:
            verify_directory(path, (WEIGHTS, OPTIMIZER, STATE))
            saved = SavedState.read(path)
            intact = True
            check(saved.history)
        except ModelFileError as error:
            warnings.warn(f"{error}; using the checkpoint before it", stacklevel=2)
            continue
        load_checkpoint(path, learner)
        return path
    if intact:
        raise RunError(f"{directory.parent / 'metrics.jsonl'} is damaged: restore it from a copy, then resume")
    return None


class SavedState(NamedTuple):
    """The content of state.json."""

    progress: Progress
    history: History

    @classmethod
    def read(cls, path: Path) -> SavedState:
        """The state in a checkpoint, whose step must be that of its name."""
        file = path / STATE
        try:
            values = parse_table(read_text(file))
            history = record(History, values.pop("history", None))
            progress = record(Progress, values)
            if min(progress.epoch, progress.best_epoch) < 0 or progress.step != int(path.name):
                raise ValueError(f"step {progress.step} of epoch {progress.epoch} is not that of {path.name}")
            return cls(progress, history)
        except (OSError, ValueError, TypeError) as error:
            raise ModelFileError(f"cannot read {file}: {error}") from None


def newest_state(directory: Path) -> SavedState | None:
    """The progress and history in the newest checkpoint; None where there is no intact one."""
    newest = next(iter(saved_checkpoints(directory)), None)
    try:
        if newest is not None:
            verify_file(newest, STATE, read_manifest(newest, (STATE,)))
            return SavedState.read(newest)
    except (ModelFileError, OSError):
        pass
    return None


def load_checkpoint(path: Path, learner: Learner) -> None:
    """Load a checkpoint, whose checksums have been verified, into a learner."""
    device = str(next(learner.model.parameters()).device)
    wanted = {name: header_of(tensor) for name, tensor in learner.modules.state_dict().items()}
    has_best = (path / BEST).exists()
    for name in (WEIGHTS, *([BEST] if has_best else [])):
        if problem := misfit(read_header(path / name), wanted):
            raise ModelFileError(f"{path / name} does not fit this run's network: {problem}")
    learner.modules.load_state_dict(read_tensors(path / WEIGHTS, device))
    try:
        _restore_optimizers(learner.optimizers, read_tensors(path / OPTIMIZER, device))
    except (ValueError, KeyError, IndexError):
        raise ModelFileError(f"{path / OPTIMIZER} is not the optimiser state of this run's network") from None
    learner.progress = SavedState.read(path).progress
    learner.best = read_tensors(path / BEST) if has_best else None


def saved_checkpoints(directory: Path) -> list[Path]:
    """The checkpoints in a folder, newest first."""
    if not directory.is_dir():
        return []
    checkpoints = (path for path in directory.iterdir() if path.name.isdecimal() and path.name.isascii())
    return sorted(checkpoints, key=lambda path: -int(path.name))


def _optimizer_tensors(optimizers: Mapping[str, torch.optim.Optimizer]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for owner, optimizer in optimizers.items():
        for index, entry in optimizer.state_dict()["state"].items():
            tensors |= {f"{owner}.{index}.{name}": tensor.detach().cpu().clone() for name, tensor in entry.items()}
    return tensors


def _restore_optimizers(optimizers: Mapping[str, torch.optim.Optimizer], tensors: Mapping[str, Tensor]) -> None:
    """Give each optimiser its state; a key or shape that is not one of its own is an error."""
    for owner, optimizer in optimizers.items():
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        state: dict[int, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            belongs_to, index, name = key.split(".")
            if belongs_to == owner:
                if tensor.shape not in ((), parameters[int(index)].shape):
                    raise ValueError(f"{key} has another shape than its parameter")
                state.setdefault(int(index), {})[name] = tensor
        if any(entry.keys() != {"step", "exp_avg", "exp_avg_sq"} for entry in state.values()):
            raise KeyError("Adam's step and moments")
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
