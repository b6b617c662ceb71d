"""Everything a run needs to continue exactly: weights, optimiser, and how far it came. No pickle."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from wiseale.durable import to_json, verify_directory, write_directory
from wiseale.errors import ModelFileError

_KEPT = 2


@dataclass
class Progress:
    """How far a run is; with the weights and the optimiser it determines all that follows.

    Attributes:
        epoch: completed passes over the training data.
        step: completed optimiser steps.
        sums: running sums of the terms over the steps of the unfinished epoch.
        best_loss: lowest held-out loss so far, after the warm-up.
        stale_epochs: epochs since then.
        stopped: early stopping has ended the run.
    """

    epoch: int = 0
    step: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    best_loss: float | None = None
    best_epoch: int = 0
    stale_epochs: int = 0
    stopped: bool = False


@dataclass
class Learner:
    """What training changes: the model, the optimiser, the progress, and the best weights yet."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    progress: Progress
    best: dict[str, Tensor] | None = None


def save_checkpoint(directory: Path, learner: Learner) -> Path:
    """Write ``directory/NNNNNN`` for the current step and keep the newest two."""
    target = directory / f"{learner.progress.step:06d}"

    def fill(temporary: Path) -> None:
        save_file(snapshot(learner.model), temporary / "weights.safetensors")
        save_file(_optimizer_tensors(learner.optimizer), temporary / "optimizer.safetensors")
        if learner.best is not None:
            save_file(learner.best, temporary / "best.safetensors")
        (temporary / "state.json").write_text(to_json(asdict(learner.progress)), encoding="utf-8")

    write_directory(target, fill)
    for old in _checkpoints(directory)[_KEPT:]:
        shutil.rmtree(old)
    return target


def load_newest(directory: Path, learner: Learner) -> Path | None:
    """Bring a learner to the newest undamaged checkpoint; a damaged one is passed over with a warning."""
    for path in _checkpoints(directory):
        try:
            verify_directory(path)
        except ModelFileError as error:
            warnings.warn(f"{error}; using the checkpoint before it", stacklevel=2)
            continue
        device = next(learner.model.parameters()).device
        learner.model.load_state_dict(load_file(path / "weights.safetensors", device=str(device)))
        _restore_optimizer(learner.optimizer, load_file(path / "optimizer.safetensors", device=str(device)))
        learner.progress = Progress(**json.loads((path / "state.json").read_text(encoding="utf-8")))
        best = path / "best.safetensors"
        learner.best = load_file(best) if best.exists() else None
        return path
    return None


def snapshot(model: nn.Module) -> dict[str, Tensor]:
    """A copy of a module's state on the CPU."""
    return {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}


def _checkpoints(directory: Path) -> list[Path]:
    """Checkpoints, newest first."""
    if not directory.is_dir():
        return []
    return sorted((path for path in directory.iterdir() if path.name.isdigit()), key=lambda p: -int(p.name))


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": tensor.cpu() for index, entry in state.items() for name, tensor in entry.items()}


def _restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
