"""The training loop: batch → encode → sample → decode → terms → backward → step, for every objective alike."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Protocol

import torch
from torch import Tensor

from wiseale.errors import DivergenceError
from wiseale.objectives.terms import Batch, Terms
from wiseale.posterior import Posterior
from wiseale.processes.collectives import (
    average_gradients,
    batch_statistics,
    broadcast,
    gather,
    gather_async,
    sum_over_ranks,
)
from wiseale.processes.world import ALONE, World
from wiseale.randomness import Purpose, generator, shuffled, standard_normal
from wiseale.training.adversary import adversarial_steps, adversarial_turns
from wiseale.training.batches import Batches
from wiseale.training.hidden_cells import hide_cells
from wiseale.training.learner import Learner, snapshot
from wiseale.training.plan import Plan
from wiseale.training.records import TimedEpochRecord
from wiseale.training.step_log import LoggedStep, StepLog, add_terms, measured


class Journal(Protocol):
    """Where the loop reports to; the weights do not depend on it."""

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        """Some steps were made; the terms are running means of the epoch so far."""

    def epoch(self, record: TimedEpochRecord) -> None:
        """An epoch ended."""

    def checkpoint(self, learner: Learner) -> None:
        """The learner may be saved now."""

    def interrupted(self) -> bool:
        """Whether to save and return after this step; every rank must answer alike."""
        ...


def fit(
    learner: Learner,
    train: Batches,
    held_out: Batches | None,
    plan: Plan,
    journal: Journal,
    world: World = ALONE,
) -> bool:
    """Train from wherever the learner is to the end of the plan; False where the journal interrupted it.

    Each rank of the world takes its part of every batch, with the noise that part would have on one process; gradients
    are averaged, so that all ranks hold the same weights.
    """
    progress, optimizer = learner.progress, learner.optimizers["main"]
    steps_per_epoch = len(train) // plan.batch_size
    part = world.part(plan.batch_size)
    terms_of = average_gradients(
        lambda x: _terms(learner, x, plan, "noise", progress.step, world), optimizer.parameters, world
    )
    turns = adversarial_turns(learner, world)
    log = StepLog(progress, world)
    if progress.step == 0 and plan.patience is not None and held_out:
        _watch(learner, _held_out_terms(learner, held_out, plan, world), plan)

    while progress.epoch < plan.max_epochs and not progress.stopped:
        started, cpu_started = time.perf_counter(), time.process_time()
        first = progress.step % steps_per_epoch
        order = shuffled(len(train), plan.seed, "order", progress.epoch)
        learner.modules.train()

        for s in range(first, steps_per_epoch):
            lr = plan.lr * plan.schedule(progress.step / steps_per_epoch, plan.max_epochs)
            warmup = _warmup(plan, progress.step, steps_per_epoch)
            x = train.read_part(order[s * plan.batch_size : (s + 1) * plan.batch_size], progress.step, part)

            terms, posterior = terms_of(x)
            loss = terms.loss_at(warmup)
            optimizer.clear()
            loss.backward()  # type: ignore[no-untyped-call]
            if plan.max_grad_norm is not None:
                torch.nn.utils.clip_grad_norm_(optimizer.parameters, plan.max_grad_norm)
            optimizer.step_at(lr)
            if turns:
                terms = adversarial_steps(learner, turns, terms, x, plan, lr / plan.lr, world)
            progress.step += 1

            log.add(terms, posterior, loss)
            last = s + 1 == steps_per_epoch
            stop = journal.interrupted()
            due = progress.step % plan.checkpoint_every == 0 or stop
            if log.full or last or due:
                log.flush()
                means = {name: total / (s + 1) for name, total in progress.sums.items()}
                journal.step(progress.epoch, s + 1, steps_per_epoch, means)
            if last:
                held = _end_epoch(learner, held_out, plan, world)
                journal.epoch(
                    TimedEpochRecord(
                        epoch=progress.epoch,
                        step=progress.step,
                        lr=lr,
                        warmup=warmup,
                        train=means,
                        held_out=held,
                        samples=(s + 1 - first) * plan.batch_size,
                        seconds=time.perf_counter() - started,
                        cpu_seconds=time.process_time() - cpu_started,
                    )
                )
            if due:
                _refuse_broken_weights(learner)
                journal.checkpoint(learner)
            if stop:
                return False
    _refuse_broken_weights(learner)
    return True


def _end_epoch(learner: Learner, held_out: Batches | None, plan: Plan, world: World) -> dict[str, float] | None:
    """Count the epoch and watch the held-out loss, where it is due; its terms."""
    progress = learner.progress
    progress.epoch += 1
    progress.sums = {}
    watched = progress.epoch % plan.watch_every == 0 or progress.epoch == plan.max_epochs
    held = _held_out_terms(learner, held_out, plan, world) if held_out and watched else None
    _watch(learner, held, plan)
    return held


def _terms(
    learner: Learner, x: Tensor, plan: Plan, purpose: Purpose, counter: int, world: World
) -> tuple[Terms, Posterior]:
    """The objective's terms on a batch, of which x is this rank's part, with the noise of this purpose and counter."""
    model, objective, size = learner.model, learner.objective, len(x) * world.size
    noise = standard_normal((size, model.latent_dim), plan.seed, purpose, counter).to(x.device)
    own_noise = noise[world.part(size)]
    seen = hide_cells(model, x, plan.seed, counter, world) if purpose == "noise" else x
    with torch.autocast(x.device.type, torch.bfloat16, enabled=plan.bf16):
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


def _refuse_broken_weights(learner: Learner) -> None:
    """A checkpoint or model never holds NaN: a step may have been finite and its update not."""
    for name, parameter in learner.modules.named_parameters():
        if not bool(parameter.isfinite().all()):
            raise DivergenceError(name, None, learner.progress.step)


@torch.no_grad()
def _held_out_terms(learner: Learner, held_out: Batches, plan: Plan, world: World) -> dict[str, float]:
    """Means of the terms over the held-out rows, with fixed noise and the prior at its full weight.

    Rows are taken in batches of M in a fixed random order, so that a batch's aggregate means the same as in training,
    also where the rows of a file are sorted; what is left over after the last full batch is not used. Ranks take whole
    batches in turn: the result is that of one process.
    """
    learner.modules.eval()
    broadcast(batch_statistics(learner.modules), world)
    size = min(plan.batch_size, len(held_out))
    count = len(held_out) // size
    order = shuffled(len(held_out), plan.seed, "held-out order")
    rows: dict[int, Tensor] = {}
    for batch in {0, *range(world.rank, count, world.size)}:  # the first on every rank, for the terms' names
        x = held_out.read(order[batch * size : (batch + 1) * size], batch)
        terms, posterior = _terms(learner, x, plan, "held-out noise", batch, ALONE)
        names, rows[batch] = measured([LoggedStep.of(terms, posterior, terms.loss)])
    values = rows[0].new_zeros(count, len(names))
    for batch in range(world.rank, count, world.size):
        values[batch] = rows[batch]
    sums: dict[str, float] = {}
    add_terms(sum_over_ranks(values, world), names, list(range(count)), sums)
    return {name: value / count for name, value in sums.items()}


def _watch(learner: Learner, held_out: Mapping[str, float] | None, plan: Plan) -> None:
    """Early stopping on the held-out loss: step 0 counts, then every epoch once the warm-up is over."""
    progress = learner.progress
    if plan.patience is None or held_out is None or 0 < progress.epoch < plan.prior_warmup:
        return
    if progress.best_loss is None or held_out["loss"] < progress.best_loss:
        progress.best_loss, progress.best_epoch = held_out["loss"], progress.epoch
        progress.best_terms = dict(held_out)
        learner.best = snapshot(learner.modules)
    since = progress.epoch - max(progress.best_epoch, math.ceil(plan.prior_warmup))
    progress.stopped = since >= plan.patience


def _warmup(plan: Plan, step: int, steps_per_epoch: int) -> float:
    """Linear from 0 to 1 over the warm-up epochs."""
    total = plan.prior_warmup * steps_per_epoch
    return 1.0 if total == 0 else min(1.0, step / total)
