"""The training loop: batch → encode → sample → decode → terms → backward → step, for every objective alike."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from wiseale.errors import DivergenceError
from wiseale.processes.collectives import average_gradients, batch_statistics, broadcast, sum_over_ranks
from wiseale.processes.world import ALONE, World
from wiseale.randomness import shuffled
from wiseale.training.batches import Batches
from wiseale.training.learner import Learner, snapshot
from wiseale.training.settings import Plan
from wiseale.training.step import (
    LoggedStep,
    add_terms,
    adversarial_losses,
    adversarial_steps,
    mean_terms,
    must_be_read,
    terms_of_batch,
)


@dataclass(frozen=True)
class EpochRecord:
    """The terms of an epoch, nats per observation: one line of metrics.jsonl.

    ``epoch`` and ``step`` count what is completed; ``lr`` and ``warmup``, the factor of the prior's weight, are those
    of the last step. Terms are means over batches; ``held_out`` is None where nothing is held out.
    """

    epoch: int
    step: int
    lr: float
    warmup: float
    train: Mapping[str, float]
    held_out: Mapping[str, float] | None


@dataclass(frozen=True)
class TimedEpochRecord(EpochRecord):
    """An epoch that this process has just finished: ``samples`` rows in ``seconds``.

    ``cpu_seconds`` is the processor time of all its threads. After a resumption in the middle of an epoch all three
    count only what this process did.
    """

    samples: int
    seconds: float
    cpu_seconds: float


class Reports(Protocol):
    """What is told of the progress of training."""

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        """Some steps were made; the terms are running means of the epoch so far."""

    def epoch(self, record: TimedEpochRecord) -> None:
        """An epoch ended."""


class Journal(Reports, Protocol):
    """Where the loop reports to; the weights do not depend on it."""

    def checkpoint(self, learner: Learner) -> None:
        """The learner may be saved now."""

    def interrupted(self) -> bool:
        """Whether to save and return after this step; every rank must answer alike."""
        ...


def fit(
    learner: Learner, train: Batches, held_out: Batches | None, plan: Plan, journal: Journal, world: World = ALONE
) -> bool:
    """Train from wherever the learner is to the end of the plan; False where the journal interrupted it.

    Each rank of the world takes its part of every batch, with the noise that part would have on one process; gradients
    are averaged, so that all ranks hold the same weights.
    """
    progress, optimizer = learner.progress, learner.optimizers["main"]
    steps_per_epoch = len(train) // plan.batch_size
    warmup_steps = plan.prior_warmup * steps_per_epoch
    part = world.part(plan.batch_size)
    terms_of = average_gradients(
        lambda x: terms_of_batch(learner, x, plan, "noise", progress.step, world), optimizer.parameters, world
    )
    adversary = adversarial_losses(learner, world)
    unread: list[LoggedStep] = []
    if progress.step == 0 and plan.patience is not None and held_out:
        _watch(learner, _held_out_terms(learner, held_out, plan, world), plan)

    while progress.epoch < plan.max_epochs and not progress.stopped:
        started, cpu_started = time.perf_counter(), time.process_time()
        first = progress.step % steps_per_epoch
        order = shuffled(len(train), plan.seed, "order", progress.epoch)
        learner.modules.train()

        for s in range(first, steps_per_epoch):
            lr = plan.lr * plan.lr_schedule(progress.step / steps_per_epoch, plan.max_epochs)
            warmup = min(1.0, progress.step / warmup_steps) if warmup_steps else 1.0  # linear from 0 to 1
            x = train.read_part(order[s * plan.batch_size : (s + 1) * plan.batch_size], progress.step, part)

            terms, posterior = terms_of(x)
            loss = terms.loss_at(warmup)
            optimizer.clear()
            loss.backward()  # type: ignore[no-untyped-call]
            if plan.max_grad_norm is not None:
                torch.nn.utils.clip_grad_norm_(optimizer.parameters, plan.max_grad_norm)
            optimizer.step_at(lr)
            if adversary:
                terms = adversarial_steps(learner, adversary, terms, x, plan, lr / plan.lr, world)
            progress.step += 1

            unread.append(LoggedStep.of(terms, posterior, loss))
            last = s + 1 == steps_per_epoch
            stop = journal.interrupted()
            due = progress.step % plan.checkpoint_every == 0 or stop
            if must_be_read(unread) or last or due:
                steps = range(progress.step + 1 - len(unread), progress.step + 1)
                add_terms(*mean_terms(unread, world), steps, progress.sums, epoch=progress.epoch + 1)
                unread.clear()
                means = {name: total / (s + 1) for name, total in progress.sums.items()}
                journal.step(progress.epoch, s + 1, steps_per_epoch, means)
            if last:
                progress.epoch, progress.sums = progress.epoch + 1, {}
                watched = progress.epoch % plan.watch_every == 0 or progress.epoch == plan.max_epochs
                held = _held_out_terms(learner, held_out, plan, world) if held_out and watched else None
                _watch(learner, held, plan)
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
        terms, posterior = terms_of_batch(learner, x, plan, "held-out noise", batch, ALONE)
        names, rows[batch] = mean_terms([LoggedStep.of(terms, posterior, terms.loss)])
    values = rows[0].new_zeros(count, len(names))
    for batch in range(world.rank, count, world.size):
        values[batch] = rows[batch]
    sums: dict[str, float] = {}
    add_terms(names, sum_over_ranks(values, world), range(count), sums)
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
