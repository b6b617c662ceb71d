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
from wiseale.networks.model import Model
from wiseale.objectives.terms import Adversarial, ObjectiveCall
from wiseale.priors import OwnPrior
from wiseale.training.adam import Adam

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
    """What training changes: model and objective, their optimisers, the progress, and the best weights yet.

    Attributes:
        model: the auto-encoder.
        objective: what the loop calls on a batch; its own networks or memory, if any, are saved with the model.
        optimizers: "main" for all but a critic's parameters; "critic" and "encoder" where the objective is adversarial.
    """

    model: Model
    objective: ObjectiveCall
    optimizers: dict[str, Adam]
    progress: Progress = field(default_factory=Progress)
    best: dict[str, Tensor] | None = None

    @classmethod
    def fresh(cls, model: Model, objective: ObjectiveCall, lr: float) -> Learner:
        """A learner at step 0."""
        parts = [model, objective] if isinstance(objective, nn.Module) else [model]
        critic = list(objective.critic_parameters()) if isinstance(objective, Adversarial) else []
        theirs = {id(parameter) for parameter in critic}
        ours = [p for part in parts for p in part.parameters() if id(p) not in theirs]
        optimizers = {"main": Adam(ours, lr)}
        if isinstance(objective, Adversarial):
            optimizers["critic"] = _adversary(critic, objective.critic_lr)
            if objective.encoder_lr is not None:
                encoder = [*model.body.parameters(), *model.head.parameters()]
                optimizers["encoder"] = _adversary(encoder, objective.encoder_lr)
        return cls(model, objective, optimizers)

    def finish(self) -> Model:
        """The finished model: the best epoch's weights, where early stopping kept any, and its own prior, if any."""
        if self.best is not None:
            self.modules.load_state_dict(self.best)
        if isinstance(self.objective, nn.Module) and isinstance(self.objective, OwnPrior):
            self.model.prior = self.objective
        return self.model

    @property
    def modules(self) -> nn.ModuleDict:
        """All that has weights."""
        parts: dict[str, nn.Module] = {"model": self.model}
        if isinstance(self.objective, nn.Module):
            parts["objective"] = self.objective
        return nn.ModuleDict(parts)


def _adversary(parameters: list[nn.Parameter], lr: float) -> Adam:
    """Adam with β1 = 0.5, as the adversarial systems' authors use it."""
    return Adam(parameters, lr, betas=(0.5, 0.999))


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
    """Bring a learner to the newest undamaged checkpoint; a damaged one is passed over with a warning."""
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
    """Bring a learner to a checkpoint whose sums have been checked."""
    device = next(learner.model.parameters()).device
    learner.modules.load_state_dict(load_file(path / "weights.safetensors", device=str(device)))
    _restore_optimizers(learner.optimizers, load_file(path / "optimizer.safetensors", device=str(device)))
    learner.progress = Progress(**json.loads((path / "state.json").read_text(encoding="utf-8")))
    best = path / "best.safetensors"
    learner.best = load_file(best) if best.exists() else None


def snapshot(model: nn.Module) -> dict[str, Tensor]:
    """A copy of a module's state on the CPU."""
    return {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}


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
