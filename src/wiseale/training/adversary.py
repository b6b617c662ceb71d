"""Adversarial training: the critic step, and the encoder step of some objectives, after each auto-encoder step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from wiseale.objectives.terms import Adversarial, Terms
from wiseale.processes.collectives import average_gradients, gather
from wiseale.processes.world import World
from wiseale.randomness import generator, standard_normal
from wiseale.training.hidden_cells import hide_cells
from wiseale.training.learner import Learner
from wiseale.training.plan import Plan


@dataclass(frozen=True)
class Turn:
    """One adversarial step.

    Attributes:
        name: the optimiser that steps, ``"critic"`` or ``"encoder"``.
        loss_of: its loss as a function of codes (M, d_z) and a generator.
        lr: its learning rate.
        through_encoder: whether the gradient flows through the codes into the encoder.
    """

    name: str
    loss_of: Callable[[Tensor, torch.Generator], Tensor]
    lr: float
    through_encoder: bool


def adversarial_turns(learner: Learner, world: World) -> list[Turn]:
    """The critic's step, then the encoder's if the objective has one; empty for objectives without a critic."""
    objective = learner.objective
    if not isinstance(objective, Adversarial):
        return []
    critic_loss = average_gradients(objective.critic_loss, learner.optimizers["critic"].parameters, world)
    turns = [Turn("critic", critic_loss, objective.critic_lr, False)]
    if objective.encoder_lr is not None:
        encoder_loss = average_gradients(objective.encoder_loss, learner.optimizers["encoder"].parameters, world)
        turns.append(Turn("encoder", encoder_loss, objective.encoder_lr, True))
    return turns


def adversarial_steps(
    learner: Learner, turns: list[Turn], terms: Terms, x: Tensor, plan: Plan, schedule: float, world: World
) -> Terms:
    """Run the adversarial steps on codes of the updated encoder, and add their losses to the terms' details.

    Ranks encode a part of the batch each; the losses are those of the codes of all.
    """
    step, model = learner.progress.step, learner.model
    size = len(x) * world.size
    noise = standard_normal((size, model.latent_dim), plan.seed, "critic", step, 0)[world.part(size)].to(x.device)
    seen = hide_cells(model, x, plan.seed, step, world)
    losses = {}
    for turn in turns:
        through = turn.through_encoder
        with torch.autocast(x.device.type, torch.bfloat16, enabled=plan.bf16), torch.set_grad_enabled(through):
            z = model.encode(seen).sample(noise)
        loss = turn.loss_of(gather(z, world), generator(plan.seed, "critic", step, 1))
        optimizer = learner.optimizers[turn.name]
        optimizer.clear()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step_at(turn.lr * schedule)
        losses[f"{turn.name}_loss"] = loss.detach()
    return replace(terms, details={**terms.details, **losses})
