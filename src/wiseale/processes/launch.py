"""Start a command as several ranks on this machine, with torchrun's environment variables, and end them together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from wiseale.errors import RunError
from wiseale.platform.machine import loopback_interface
from wiseale.platform.signals import NEW_GROUP, SIGPIPE, STOP_SIGNALS, request_stop
from wiseale.processes.world import RESUME, STORE

_POLL_SECONDS = 0.05
_FAILED_SECONDS = 5.0  # for the other ranks to end after one has failed
_SAVING_SECONDS = 60.0  # for the other ranks to save and end after one was interrupted and has ended
_INTERRUPTED = tuple(128 + number for number in (*STOP_SIGNALS, SIGPIPE))

Rank = subprocess.Popen[bytes]


def launch(arguments: Sequence[str], processes: int) -> int:
    """Run ``wiseale ARGUMENTS`` as that many ranks and wait for them; returns the exit code of the run.

    SIGINT and SIGTERM are forwarded to every rank; a rank that fails ends the others.
    """
    ranks: list[Rank] = []
    received: list[int] = []
    with tempfile.TemporaryDirectory(prefix="wiseale-") as folder, _forward_signals(ranks, received):
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
    own = {STORE: str(store)}
    if interface := loopback_interface():
        own["GLOO_SOCKET_IFNAME"] = os.environ.get("GLOO_SOCKET_IFNAME", interface)
    return subprocess.Popen(
        [sys.executable, "-m", "wiseale", *arguments],
        stdin=subprocess.PIPE,
        env=os.environ | {name: str(value) for name, value in world.items()} | own,
        start_new_session=True,
        creationflags=NEW_GROUP,
    )


def _watch(ranks: Sequence[Rank]) -> int | None:
    """Wait until all ranks have ended or time is up; returns the rank that failed, if any."""
    failed: int | None = None
    deadline = float("inf")
    # A list, not a generator: every rank is asked, not the first alone.
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


@contextmanager
def _forward_signals(ranks: Sequence[Rank], received: list[int]) -> Iterator[None]:
    """Send SIGINT, SIGTERM and SIGHUP on to all ranks, which save and end; a second signal ends them at once."""

    def forward(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for rank in ranks:
            request_stop(rank, number)

    heeded = [number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, forward) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
