"""Objectives with a critic: the steps after the auto-encoder's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from wiseale.objectives.terms import Adversarial, Terms
from wiseale.processes.collectives import draw_rows
from wiseale.processes.ddp import average_gradients
from wiseale.processes.world import World
from wiseale.randomness import generator, standard_normal
from wiseale.training.learner import Learner
from wiseale.training.plan import Plan


@dataclass(frozen=True)
class Turn:
    """A step after the auto-encoder's: whose, what it minimises given codes, its learning rate, and how z is made."""

    name: str
    loss_of: Callable[[Tensor, torch.Generator], Tensor]
    lr: float
    through_encoder: bool


def adversarial_turns(learner: Learner, world: World) -> list[Turn]:
    """The critic's turn, then the encoder's own where there is one; none for objectives without a critic."""
    objective = learner.objective
    if not isinstance(objective, Adversarial):
        return []
    critic_loss = average_gradients(objective.critic_loss, learner.optimizers["critic"], world)
    turns = [Turn("critic", critic_loss, objective.critic_lr, False)]
    if objective.encoder_lr is not None:
        encoder_loss = average_gradients(objective.encoder_loss, learner.optimizers["encoder"], world)
        turns.append(Turn("encoder", encoder_loss, objective.encoder_lr, True))
    return turns


def adversarial_steps(
    learner: Learner, turns: list[Turn], terms: Terms, x: Tensor, plan: Plan, schedule: float
) -> Terms:
    """The critic's step on codes of the encoder as it now is, then the encoder's own step where there is one."""
    step, model = learner.progress.step, learner.model
    noise = draw_rows(len(x), lambda n: standard_normal((n, model.latent_dim), plan.seed, "critic", step, 0))
    noise = noise.to(x.device, non_blocking=True)
    losses = {}
    for turn in turns:
        through = turn.through_encoder
        with torch.autocast(x.device.type, torch.bfloat16, enabled=plan.bf16), torch.set_grad_enabled(through):
            z = model.encode(x).sample(noise)
        loss = turn.loss_of(z, generator(plan.seed, "critic", step, 1))
        optimizer = learner.optimizers[turn.name]
        optimizer.clear()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.advance(turn.lr * schedule)
        losses[f"{turn.name}_loss"] = loss.detach()
    return replace(terms, details={**terms.details, **losses})
