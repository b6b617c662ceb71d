"""The terms of the steps of training, logged without waiting for the device after each step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from wiseale.divergences import kl_posterior_prior
from wiseale.errors import DivergenceError
from wiseale.objectives.terms import Terms
from wiseale.posterior import Posterior
from wiseale.processes.collectives import sum_over_ranks
from wiseale.processes.world import ALONE, World
from wiseale.training.learner import Progress

_MOST_STEPS = 32  # whose terms wait on the device before they are read: one synchronisation for all of them
_MOST_ENTRIES = 1 << 20  # means of posteriors that wait with them


@dataclass(frozen=True)
class LoggedStep:
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


def measured(steps: list[LoggedStep], world: World = ALONE) -> tuple[list[str], Tensor]:
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
    values: Tensor, names: list[str], counters: list[int], sums: dict[str, float], epoch: int | None = None
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


class StepLog:
    """Steps whose terms have not been read yet; :meth:`flush` adds them to the sums of the epoch."""

    def __init__(self, progress: Progress, world: World) -> None:
        self._progress, self._world = progress, world
        self._steps: list[LoggedStep] = []

    def add(self, terms: Terms, posterior: Posterior, loss: Tensor) -> None:
        """Log the step that has just been made."""
        self._steps.append(LoggedStep.of(terms, posterior, loss))

    @property
    def full(self) -> bool:
        """Whether it is time to flush."""
        entries = len(self._steps) * self._steps[-1].posterior.mu.numel()
        return entries >= _MOST_ENTRIES or len(self._steps) == _MOST_STEPS

    def flush(self) -> None:
        """Add the terms of all logged steps to ``progress.sums``; an error at the first that is not finite."""
        step = self._progress.step
        names, values = measured(self._steps, self._world)
        counters = list(range(step + 1 - len(self._steps), step + 1))
        add_terms(values, names, counters, self._progress.sums, epoch=self._progress.epoch + 1)
        self._steps.clear()
