"""Ranks: the environment variables of torchrun, and starting a command as several of them; does not import torch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from wiseale.errors import ConfigError, ReportedByAnotherRankError, RunError, WiseAleError
from wiseale.platform.machine import NEW_GROUP, SIGPIPE, STOP_SIGNALS, handling, loopback_interface, request_stop

STORE = "WISEALE_STORE"
"""Environment variable: path of the file store that ranks started by ``wiseale --processes`` meet in."""

RESUME = "`wiseale resume` continues from the last checkpoint"
"""What a user can do when a rank of a training is lost."""

_POLL_SECONDS = 0.05
_FAILED_SECONDS = 5.0  # for the other ranks to end after one has failed
_SAVING_SECONDS = 60.0  # for the other ranks to save and end after one was interrupted and has ended
_INTERRUPTED = tuple(128 + number for number in (*STOP_SIGNALS, SIGPIPE))

Rank = subprocess.Popen[bytes]


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


def launch(arguments: Sequence[str], processes: int) -> int:
    """Run ``wiseale ARGUMENTS`` as that many ranks and wait for them; returns the exit code of the run.

    SIGINT, SIGTERM and SIGHUP are sent on to every rank, which saves and ends; a rank that fails ends the others.
    """
    ranks: list[Rank] = []
    received: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for rank in ranks:
            request_stop(rank, number)

    with tempfile.TemporaryDirectory(prefix="wiseale-") as folder, handling(forward):
        try:
            ranks += [_start(arguments, rank, processes, Path(folder) / "store") for rank in range(processes)]
            failed = _watch(ranks)
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
    if failed is None:
        return max(rank.returncode for rank in ranks)
    code = ranks[failed].returncode
    if code >= 0:
        return code
    if received:
        return 128 + received[0]
    raise RunError(
        f"rank {failed} of {processes} was killed by {signal.Signals(-code).name}, so the others were stopped: {RESUME}"
    )


def _start(arguments: Sequence[str], rank: int, processes: int, store: Path) -> Rank:
    """Start a rank in its own session, so that Ctrl-C reaches it only through us; its stdin closes when we end."""
    world = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": processes, "LOCAL_WORLD_SIZE": processes}
    variables = {STORE: str(store), **{name: str(value) for name, value in world.items()}}
    if interface := loopback_interface():
        variables["GLOO_SOCKET_IFNAME"] = os.environ.get("GLOO_SOCKET_IFNAME", interface)
    return subprocess.Popen(
        [sys.executable, "-m", "wiseale", *arguments],
        stdin=subprocess.PIPE,
        env=os.environ | variables,
        start_new_session=True,
        creationflags=NEW_GROUP,
    )


def _watch(ranks: Sequence[Rank]) -> int | None:
    """Wait until all ranks have ended or time is up; returns the rank that failed, if any."""
    failed: int | None = None
    deadline = float("inf")
    while None in [rank.poll() for rank in ranks] and time.monotonic() < deadline:
        if failed is None and (failed := _failed(ranks)) is not None:
            deadline = time.monotonic() + _FAILED_SECONDS
            for rank in ranks:
                rank.terminate()
        elif deadline == float("inf") and any(rank.returncode in _INTERRUPTED for rank in ranks):
            deadline = time.monotonic() + _SAVING_SECONDS
        time.sleep(_POLL_SECONDS)
    return failed if failed is not None else _failed(ranks)


def _failed(ranks: Sequence[Rank]) -> int | None:
    """The rank that failed: one that was killed rather than those that lost their connection to it."""
    codes = [(rank.returncode, number) for number, rank in enumerate(ranks)]
    failed = [(code > 0, number) for code, number in codes if code and code not in _INTERRUPTED]  # a kill is below 0
    return min(failed)[1] if failed else None
