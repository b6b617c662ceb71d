"""Rank and world size of this process, read from the environment variables of torchrun; does not import torch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wiseale.errors import ConfigError, ReportedByAnotherRankError, WiseAleError

STORE = "WISEALE_STORE"
"""Environment variable: path of the file store that ranks started by ``wiseale --processes`` meet in."""

RESUME = "`wiseale resume` continues from the last checkpoint"
"""What a user can do when a rank of a training is lost."""


@dataclass(frozen=True)
class World:
    """Rank of this process and number of processes: over all machines, and on this machine (``local_``)."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1

    @property
    def is_rank_0(self) -> bool:
        """Whether this process writes the run directory and prints; true on a single process."""
        return self.rank == 0

    def part(self, total: int) -> slice:
        """Slice of this rank's rows in a global batch of ``total`` rows, which must divide by the world size."""
        each = total // self.size
        return slice(self.rank * each, (self.rank + 1) * each)


ALONE = World()


def from_environment() -> World:
    """The world that torchrun or ``wiseale --processes`` set up; ``ALONE`` for a process started by neither."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return ALONE
    rank, size = _read("RANK"), _read("WORLD_SIZE")
    if not 0 <= rank < size:
        raise ConfigError(f"the environment has RANK={rank} and WORLD_SIZE={size}: a rank is below the world's size")
    if size == 1:
        return ALONE
    local_rank = _read("LOCAL_RANK") if "LOCAL_RANK" in os.environ else rank
    local_size = _read("LOCAL_WORLD_SIZE") if "LOCAL_WORLD_SIZE" in os.environ else size
    return World(rank, size, local_rank, local_size)


@contextmanager
def report_once(world: World) -> Iterator[None]:
    """Report an error that every rank meets, such as a wrong setting, on rank 0; the other ranks end silently."""
    try:
        yield
    except WiseAleError:
        if world.is_rank_0:
            raise
        raise ReportedByAnotherRankError from None


def _read(name: str) -> int:
    try:
        return int(os.environ[name])
    except ValueError:
        raise ConfigError(f"the environment variable {name} must be a whole number: it is set by torchrun") from None
