"""The processes that train together and which of them this is, from the environment torchrun makes; without torch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wiseale.errors import ConfigError, ToldElsewhereError, WiseAleError

STORE = "WISEALE_STORE"
"""Environment variable: the file through which ranks started by ``wiseale --processes`` find each other."""


@dataclass(frozen=True)
class World:
    """How many processes train together, on all machines and on this one, and the number of this process in each."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes and speaks."""
        return self.rank == 0

    def part(self, total: int) -> slice:
        """This rank's rows of a batch of ``total``: equal parts in the order of the ranks."""
        each = total // self.size
        return slice(self.rank * each, (self.rank + 1) * each)


ALONE = World()


def from_environment() -> World:
    """The world torchrun or ``wiseale --processes`` started this process in; ALONE where neither did."""
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
def told_once(world: World) -> Iterator[None]:
    """An error in here is met by every rank alike, as it follows from the settings: the first one tells it."""
    try:
        yield
    except WiseAleError:
        if world.leads:
            raise
        raise ToldElsewhereError from None


def _read(name: str) -> int:
    try:
        return int(os.environ[name])
    except ValueError:
        raise ConfigError(f"the environment variable {name} must be a whole number: it is set by torchrun") from None
