"""One step: the objective's terms on a batch, the adversary's steps after it, and the terms that are logged."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from wiseale.divergences import kl_posterior_prior
from wiseale.errors import DivergenceError
from wiseale.networks.model import Model
from wiseale.objectives.terms import Adversarial, Batch, Terms
from wiseale.posterior import Posterior
from wiseale.processes.collectives import average_gradients, gather, gather_async, sum_over_ranks
from wiseale.processes.world import ALONE, World
from wiseale.randomness import Purpose, generator, standard_normal
from wiseale.training.learner import Learner
from wiseale.training.settings import Plan

_MOST_STEPS = 32  # whose terms wait on the device before they are read: one synchronisation for all of them
_MOST_ENTRIES = 1 << 20  # means of posteriors that wait with them

AdversarialLosses = dict[str, Callable[[Tensor, torch.Generator], Tensor]]
"""By the name of the optimiser that steps, ``"critic"`` or ``"encoder"``: a loss of codes (M, d_z) and a generator."""


def hide_cells(model: Model, x: Tensor, seed: int, step: int, world: World = ALONE) -> Tensor:
    """The cells that the encoder sees in this step: of a table some are hidden at random, otherwise x itself.

    So it learns codes for rows with any cells missing. The loss still counts every observed cell: the posterior of
    fewer cells is one more q(z), so the objective stays the bound that it is. The same cells are hidden in every pass
    of a step over the batch. Draws are for the rows of all ranks, of which x is this rank's part.
    """
    if model.likelihood.hidden == 0:
        return x
    size = len(x) * world.size
    draws = torch.rand((size, *x.shape[1:]), generator=generator(seed, "hide", step))[world.part(size)]
    return x.masked_fill((draws < model.likelihood.hidden).to(x.device), math.nan)


def terms_of_batch(
    learner: Learner, x: Tensor, plan: Plan, purpose: Purpose, counter: int, world: World
) -> tuple[Terms, Posterior]:
    """The objective's terms on a batch, of which x is this rank's part, with the noise of this purpose and counter."""
    model, objective, size = learner.model, learner.objective, len(x) * world.size
    noise = standard_normal((size, model.latent_dim), plan.seed, purpose, counter).to(x.device)
    own_noise = noise[world.part(size)]
    seen = hide_cells(model, x, plan.seed, counter, world) if purpose == "noise" else x
    with torch.autocast(x.device.type, torch.bfloat16, enabled=plan.precision == "bf16"):
        if world.size == 1 or not (objective.couples_batch or objective.needs_whole_batch):
            posterior, z, likelihood = model(seen, own_noise)
        elif objective.needs_whole_batch:
            posterior = _gather_async(model.encode(seen), world)()
            z, x = posterior.sample(noise), gather(x, world)
            likelihood = model.decode(z)
        else:
            own = model.encode(seen)
            everyone = _gather_async(own, world)  # on its way while the decoder works
            likelihood = model.decode(own.sample(own_noise))
            posterior = everyone()
            z = posterior.sample(noise)
    draws = generator(plan.seed, "objective", counter)
    return objective(Batch(x, posterior, z, likelihood, draws)), posterior


def _gather_async(posterior: Posterior, world: World) -> Callable[[], Posterior]:
    """The posteriors of the whole batch, in one exchange; every rank computes the same objective from them."""
    parts = [part for part in (posterior.mu, posterior.sigma) if part is not None]
    gathered = gather_async(torch.cat(parts, 1), world)
    return lambda: Posterior(*gathered().chunk(len(parts), 1))


def adversarial_losses(learner: Learner, world: World) -> AdversarialLosses:
    """The critic's loss, then the encoder's if the objective has one; empty for objectives without a critic."""
    objective = learner.objective
    if not isinstance(objective, Adversarial):
        return {}
    losses: AdversarialLosses = {"critic": objective.critic_loss}
    if objective.encoder_lr is not None:
        losses["encoder"] = objective.encoder_loss
    return {name: average_gradients(loss, learner.optimizers[name].parameters, world) for name, loss in losses.items()}


def adversarial_steps(
    learner: Learner, losses: AdversarialLosses, terms: Terms, x: Tensor, plan: Plan, schedule: float, world: World
) -> Terms:
    """Run the adversarial steps on codes of the updated encoder, and add their losses to the terms' details.

    Ranks encode a part of the batch each; the losses are those of the codes of all.
    """
    step, model = learner.progress.step, learner.model
    size = len(x) * world.size
    noise = standard_normal((size, model.latent_dim), plan.seed, "critic", step, 0)[world.part(size)].to(x.device)
    seen = hide_cells(model, x, plan.seed, step, world)
    details = dict(terms.details)
    for name, loss_of in losses.items():
        optimizer, through_encoder = learner.optimizers[name], name == "encoder"
        with (
            torch.autocast(x.device.type, torch.bfloat16, enabled=plan.precision == "bf16"),
            torch.set_grad_enabled(through_encoder),
        ):
            z = model.encode(seen).sample(noise)
        loss = loss_of(gather(z, world), generator(plan.seed, "critic", step, 1))
        optimizer.clear()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step_at(optimizer.defaults["lr"] * schedule)
        details[f"{name}_loss"] = loss.detach()
    return replace(terms, details=details)


class LoggedStep(NamedTuple):
    """What is logged of a step, outside the graph and not yet averaged: that is done for many steps at once."""

    reconstruction: Tensor
    prior: Tensor
    posterior: Posterior
    others: dict[str, Tensor]

    @classmethod
    def of(cls, terms: Terms, posterior: Posterior, loss: Tensor) -> LoggedStep:
        """The terms of a step without their graph; ``loss`` is the one that was minimised."""
        elbo = {} if terms.elbo is None else {"elbo": terms.elbo}
        # The loss comes last, so that a divergence is reported for the term that caused it.
        others = {name: value.detach() for name, value in {**terms.details, **elbo, "loss": loss}.items()}
        return cls(terms.reconstruction.detach(), terms.prior.detach(), posterior.detach(), others)


def must_be_read(steps: list[LoggedStep]) -> bool:
    """Whether enough terms wait on the device."""
    return len(steps) == _MOST_STEPS or len(steps) * steps[-1].posterior.mu.numel() >= _MOST_ENTRIES


def mean_terms(steps: list[LoggedStep], world: World = ALONE) -> tuple[list[str], Tensor]:
    """Names and values, (steps, names), of the terms of some steps, means over ranks.

    With them goes the AEVB KL, so that every objective's ELBO is known.
    """
    columns = {"reconstruction": torch.stack([step.reconstruction for step in steps]).mean(1)}
    columns["prior"] = torch.stack([step.prior for step in steps])
    posteriors = [step.posterior for step in steps]
    if posteriors[0].sigma is not None:
        posterior = Posterior(torch.cat([q.mu for q in posteriors]), torch.cat([q.scale for q in posteriors]))
        columns["kl_posterior_prior"] = kl_posterior_prior(posterior).view(len(steps), -1).mean(1)
    for name in steps[0].others:
        columns[name] = torch.stack([step.others[name] for step in steps])
    values = torch.stack(list(columns.values()), 1)
    if world.size > 1:
        values = sum_over_ranks(values.double(), world) / world.size
    return list(columns), values


def add_terms(
    names: list[str], values: Tensor, counters: Iterable[int], sums: dict[str, float], epoch: int | None = None
) -> None:
    """Add rows of terms to the sums, in order and in float64; an error at the first that is not finite.

    ``counters`` are the rows' steps, or without ``epoch`` the numbers of their held-out batches.
    """
    for counter, row in zip(counters, values.tolist(), strict=True):
        for name, value in zip(names, row, strict=True):
            if not math.isfinite(value):
                raise DivergenceError(name, value, counter, epoch, held_out=epoch is None)
            sums[name] = sums.get(name, 0.0) + value
        if "kl_posterior_prior" in sums and "elbo" not in names:  # unless the objective computes its own
            sums["elbo"] = -(sums["reconstruction"] + sums["kl_posterior_prior"])
