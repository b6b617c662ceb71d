"""Many writers of one file while others read it; a long series of fits with flat memory and handles."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from torture.attempts import Draws, forked
from torture.subjects import Subjects, leftovers

_WRITERS, _SECONDS = 3, 1.5
SOAK_SECONDS = 600.0
_FEWEST_FITS, _GROWTH_BYTES = 12, 24 << 20


def writers_trial(subjects: Subjects, draws: Draws, folder: Path) -> str | None:
    """Readers see a whole file and, on Linux, a whole directory at every moment."""
    from wiseale.platform.atomic_files import verify_directory, write_directory, write_text

    text, directory = folder / "text.json", folder / "model"

    def fill(temporary: Path) -> None:
        for name in ("one", "two"):
            (temporary / name).write_bytes(os.urandom(20_000))

    def write() -> None:
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until:
            write_text(text, json.dumps({"long": "x" * draws.randrange(100_000)}))

    def replace() -> None:
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until:
            write_directory(directory, fill)

    write_text(text, "{}")
    write_directory(directory, fill)
    children = [_start(write) for _ in range(_WRITERS)] + [_start(replace)]
    torn = 0
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        try:
            json.loads(text.read_text())
        except (OSError, ValueError):
            torn += 1
        torn += not (directory / "one").parent.is_dir()
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    verify_directory(directory, ("one", "two"))
    if torn or any(codes) or leftovers(folder):
        return f"{torn} torn reads, exit codes {codes}, left {leftovers(folder)[:2]}"
    return None


def _start(work: object) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()  # type: ignore[operator]
            code = 0
        finally:
            os._exit(code)
    return child


def soak_trial(subjects: Subjects, draws: Draws, folder: Path, seconds: float = SOAK_SECONDS) -> str | None:
    """Fit, save, load and transform again and again: neither memory nor open files may grow."""

    def work() -> None:
        import numpy as np

        from wiseale import AutoEncoder, load

        x, sizes = np.random.default_rng(0).normal(size=(200, 5)), []
        until = time.monotonic() + seconds
        while time.monotonic() < until or len(sizes) < _FEWEST_FITS:
            estimator = AutoEncoder(network="mlp:hidden=8", latent_dim=2, max_epochs=2, random_state=0).fit(x)
            estimator.save(folder / "model")
            load(folder / "model").transform(x)
            resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
            sizes.append((resident, len(os.listdir("/proc/self/fd"))))
        middle = sizes[len(sizes) // 2]
        if sizes[-1][0] - middle[0] > _GROWTH_BYTES or sizes[-1][1] != middle[1]:
            raise AssertionError(f"memory and open files grow: {middle} to {sizes[-1]} in {len(sizes)} fits")

    return forked(work, folder, seconds=2 * seconds + 60).fault(allowed=(0,))
