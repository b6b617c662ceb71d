"""What the learning rate is multiplied by as training proceeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from wiseale.config import Settings, setting


class Schedule(Protocol):
    """A factor for the learning rate."""

    def __call__(self, epoch: float, max_epochs: int) -> float:
        """The factor after ``epoch`` passes over the data (fractions count) of ``max_epochs``."""
        ...


@dataclass(frozen=True)
class Constant(Settings):
    """Always 1."""

    def __call__(self, epoch: float, max_epochs: int) -> float:
        """One."""
        return 1.0


@dataclass(frozen=True)
class Step(Settings):
    """Multiplied by ``factor`` after each of the given epochs."""

    epochs: tuple[int, ...] = setting((30,), "epochs after which the rate falls", minimum=1)
    factor: float = setting(0.5, "what it is multiplied by", above=0)

    def __call__(self, epoch: float, max_epochs: int) -> float:
        """One factor for each epoch passed."""
        return float(self.factor ** sum(epoch >= at for at in self.epochs))


@dataclass(frozen=True)
class Cosine(Settings):
    """From 1 to ``final`` along half a cosine."""

    final: float = setting(0.0, "factor at the end", minimum=0)

    def __call__(self, epoch: float, max_epochs: int) -> float:
        """Smoothly falling."""
        return self.final + (1 - self.final) * 0.5 * (1 + math.cos(math.pi * min(epoch / max_epochs, 1.0)))
