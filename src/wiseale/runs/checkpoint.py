"""Checkpoints: weights, optimiser state and progress, enough to continue bit for bit. No pickle."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from wiseale.errors import ModelFileError
from wiseale.platform.atomic_files import to_json, verify_directory, write_directory
from wiseale.training.learner import Learner, Progress, snapshot

_KEPT = 2


def save_checkpoint(directory: Path, learner: Learner) -> Path:
    """Write ``directory/NNNNNN`` for the current step and keep the newest two."""
    target = directory / f"{learner.progress.step:06d}"

    def fill(temporary: Path) -> None:
        save_file(snapshot(learner.modules), temporary / "weights.safetensors")
        save_file(_optimizer_tensors(learner.optimizers), temporary / "optimizer.safetensors")
        if learner.best is not None:
            save_file(learner.best, temporary / "best.safetensors")
        (temporary / "state.json").write_text(to_json(asdict(learner.progress)), encoding="utf-8")

    write_directory(target, fill)
    for old in _checkpoints(directory)[_KEPT:]:
        shutil.rmtree(old)
    return target


def load_newest(directory: Path, learner: Learner) -> Path | None:
    """Load the newest undamaged checkpoint into a learner; damaged ones are skipped with a warning."""
    for path in _checkpoints(directory):
        try:
            verify_directory(path)
        except ModelFileError as error:
            warnings.warn(f"{error}; using the checkpoint before it", stacklevel=2)
            continue
        load_checkpoint(path, learner)
        return path
    return None


def load_checkpoint(path: Path, learner: Learner) -> None:
    """Load a checkpoint, whose checksums have been verified, into a learner."""
    device = next(learner.model.parameters()).device
    learner.modules.load_state_dict(load_file(path / "weights.safetensors", device=str(device)))
    _restore_optimizers(learner.optimizers, load_file(path / "optimizer.safetensors", device=str(device)))
    learner.progress = Progress(**json.loads((path / "state.json").read_text(encoding="utf-8")))
    best = path / "best.safetensors"
    learner.best = load_file(best) if best.exists() else None


def _checkpoints(directory: Path) -> list[Path]:
    """Checkpoints, newest first."""
    if not directory.is_dir():
        return []
    return sorted((path for path in directory.iterdir() if path.name.isdigit()), key=lambda p: -int(p.name))


def _optimizer_tensors(optimizers: Mapping[str, torch.optim.Optimizer]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for owner, optimizer in optimizers.items():
        for index, entry in optimizer.state_dict()["state"].items():
            tensors |= {f"{owner}.{index}.{name}": tensor.cpu() for name, tensor in entry.items()}
    return tensors


def _restore_optimizers(optimizers: Mapping[str, torch.optim.Optimizer], tensors: Mapping[str, Tensor]) -> None:
    for owner, optimizer in optimizers.items():
        state: dict[int, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            belongs_to, index, name = key.split(".")
            if belongs_to == owner:
                state.setdefault(int(index), {})[name] = tensor
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
