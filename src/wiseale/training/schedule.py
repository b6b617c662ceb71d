"""Learning-rate schedules: factors of the learning rate by epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from wiseale.config import Settings, setting


class Schedule(Protocol):
    """A factor of the learning rate as a function of the epoch."""

    def __call__(self, epoch: float, max_epochs: int) -> float:
        """The factor after ``epoch`` of ``max_epochs`` epochs; ``epoch`` may be fractional."""
        ...


@dataclass(frozen=True)
class Constant(Settings):
    """A constant learning rate: factor 1."""

    def __call__(self, epoch: float, max_epochs: int) -> float:
        """1 at every epoch."""
        return 1.0


@dataclass(frozen=True)
class Step(Settings):
    """Step decay: the learning rate is multiplied by ``factor`` after each of the given epochs.

    >>> schedule = Step(epochs=(10, 20), factor=0.5)
    >>> [schedule(epoch, 30) for epoch in (9, 10, 25)]
    [1.0, 0.5, 0.25]
    """

    epochs: tuple[int, ...] = setting((30,), "epochs after which the rate falls", minimum=1)
    factor: float = setting(0.5, "what it is multiplied by", above=0)

    def __call__(self, epoch: float, max_epochs: int) -> float:
        """``factor`` to the power of the number of given epochs that have passed."""
        return float(self.factor ** sum(epoch >= at for at in self.epochs))


@dataclass(frozen=True)
class Cosine(Settings):
    """Cosine annealing from 1 to ``final``: final + (1 − final)·½(1 + cos(π·epoch/max_epochs)).

    >>> Cosine(final=0.0)(15, 30)
    0.5
    """

    final: float = setting(0.0, "factor at the end", minimum=0)

    def __call__(self, epoch: float, max_epochs: int) -> float:
        """The annealed factor; ``final`` from ``max_epochs`` on."""
        return self.final + (1 - self.final) * 0.5 * (1 + math.cos(math.pi * min(epoch / max_epochs, 1.0)))
