"""The state of training: the model, its objective, their optimisers, and the progress."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from wiseale.networks.model import Model
from wiseale.objectives.terms import Adversarial, ObjectiveCall
from wiseale.priors import OwnPrior

_ADVERSARIES_BETA_1 = 0.5  # as the adversarial systems' authors use it


class Adam(torch.optim.Adam):
    """torch's fused Adam with one step count for all parameters.

    Counting for each of them and sorting tensors by device takes as long as the update: 5 to 10 % of a training step of
    the default network (decision 33). The update is the same to the last bit.
    """

    _count: Tensor | None = None  # in every parameter's state, while all have had as many steps

    def __init__(self, parameters: list[nn.Parameter], lr: float, beta_1: float = 0.9) -> None:
        super().__init__(parameters, lr=lr, betas=(beta_1, 0.999), fused=True)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The parameters it updates."""
        return self.param_groups[0]["params"]  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Drop all gradients: ``zero_grad`` without its overhead."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step_at(self, lr: float) -> None:
        """One step at this learning rate."""
        group, parameters = self.param_groups[0], self.parameters
        group["lr"] = lr
        gradients = [parameter.grad for parameter in parameters]
        if self._count is None or any(gradient is None for gradient in gradients):
            self.step()
            return
        states = [self.state[parameter] for parameter in parameters]
        self._count += 1
        torch._fused_adam_(
            parameters,  # type: ignore[arg-type]
            gradients,  # type: ignore[arg-type]
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [self._count] * len(states),
            lr=lr,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
        )

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """torch's own step, with a count for each parameter; they become one if all are equal."""
        for state in self.state.values():
            state["step"] = state["step"].clone()
        super().step()
        states = list(self.state.values())
        same = len(states) == len(self.parameters) and len({state["step"].item() for state in states}) == 1
        self._count = states[0]["step"] if same else None
        for state in states if same else ():
            state["step"] = self._count

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Replace the state."""
        super().load_state_dict(state_dict)
        self._count = None


@dataclass
class Progress:
    """How far a run is, in completed epochs and steps; with weights and optimiser it determines all that follows.

    ``sums`` are those of the terms over the steps of the unfinished epoch. ``best_loss`` is the lowest held-out loss so
    far, at step 0 or after the warm-up, with the epoch and all terms then. ``stopped``: early stopping has ended the
    run.
    """

    epoch: int = 0
    step: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    best_loss: float | None = None
    best_epoch: int = 0
    best_terms: dict[str, float] = field(default_factory=dict)
    stopped: bool = False

    @property
    def kept_epoch(self) -> int:
        """The epoch whose weights a finished run keeps: the best where held-out rows decide, 0 for the start."""
        return self.epoch if self.best_loss is None else self.best_epoch


@dataclass
class Learner:
    """The state of training: model, objective, optimisers, progress, and the best weights so far.

    The objective's own networks, if any, are saved with the model. Optimisers are "main" for all but a critic's
    parameters; "critic" and "encoder" where the objective is adversarial.
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
            optimizers["critic"] = Adam(critic, objective.critic_lr, _ADVERSARIES_BETA_1)
            if objective.encoder_lr is not None:
                optimizers["encoder"] = Adam(model.encoder_parameters(), objective.encoder_lr, _ADVERSARIES_BETA_1)
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
        """The modules with weights: the model, and the objective where it has its own networks."""
        parts: dict[str, nn.Module] = {"model": self.model}
        if isinstance(self.objective, nn.Module):
            parts["objective"] = self.objective
        return nn.ModuleDict(parts)


def snapshot(model: nn.Module) -> dict[str, Tensor]:
    """A copy of a module's state on the CPU."""
    return {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}
