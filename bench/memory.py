"""Training from files: private memory while the file grows tenfold, and speed beside a set that is held in memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bench.table import Table

SHAPE = (3, 64, 64)
HELD, MAPPED = 40_000, 45_000  # images just below and just above what is converted once and kept
BLOCK = 5_000
ALLOWED = 500_000_000  # bytes, in the run whose memory is limited


def measure(quick: bool) -> list[Table]:
    sizes = (HELD, MAPPED) if quick else (HELD, MAPPED, 10 * MAPPED)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npy"
        for images in sizes:
            write(path, images)
            rate, private = train(path, Path(folder) / f"run-{images}")
            read = "held in memory" if images <= HELD else "mapped"
            rows.append((images, path.stat().st_size / 1e9, read, rate, private))
        with memory_group(ALLOWED) as group:
            if group is not None:
                write(path, MAPPED)
                forget(path)
                rate, private = train(path, Path(folder) / "run-limited", group)
                size = path.stat().st_size / 1e9
                rows.append((MAPPED, size, f"mapped, {ALLOWED / 1e9:g} GB allowed", rate, private))
    caption = (
        "One epoch of a small convolutional WiSE-ALE over a file of uint8 images, 1 thread, through the command line: "
        "images per second, and the largest private memory (RssAnon) seen while it ran, in MB. Where memory is limited "
        "by a control group, the limit includes the cached pages of the file."
    )
    return [Table("memory", caption, ("images", "file, GB", "read", "images per second", "private, MB"), tuple(rows))]


def write(path: Path, images: int) -> None:
    """Random images, block by block."""
    x = np.lib.format.open_memmap(path, "w+", np.uint8, (images, *SHAPE))
    rng = np.random.default_rng(0)
    block = rng.integers(0, 256, (BLOCK, *SHAPE), np.uint8)
    for start in range(0, images, BLOCK):
        x[start : start + BLOCK] = np.roll(block, start, axis=-1)
    x.flush()


def forget(path: Path) -> None:
    """Drop a file's cached pages, so that whoever reads it is charged for them."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def memory_group(allowed: int) -> Iterator[Path | None]:
    """A control group whose processes may use so many bytes, page cache included; None where none can be made."""
    first, second = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")  # the two versions of control groups
    root = first if first.is_dir() else second
    group, limit = root / "wiseale-bench", "memory.limit_in_bytes" if root == first else "memory.max"
    try:
        group.mkdir()
    except OSError:
        yield None
        return
    try:
        made = (group / limit).exists()  # by the kernel
        if made:
            (group / limit).write_text(str(allowed))
        yield group if made else None
    finally:
        group.rmdir()


def train(path: Path, run: Path, group: Path | None = None) -> tuple[float, float]:
    """Samples per second, and megabytes of private memory at most; in a control group where one is given."""
    command = [sys.executable, "-m", "wiseale", "train", path, "--out", run, "--max-epochs", "1", "--threads", "1"]
    command += ["--network", "conv2d:channels=8,16,hidden=64", "--latent-dim", "4"]
    join = f"echo $$ > {group / 'cgroup.procs'} && " if group else ""
    shell = ["sh", "-c", f'{join}exec "$@"', "sh", *map(str, command)]
    process = subprocess.Popen(shell, stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        try:
            found = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        except OSError:
            break
        peak = max(peak, int(found[1]) if found else 0)
        time.sleep(0.05)
    if process.wait():
        raise SystemExit(f"training from {path.name} failed")
    timing = json.loads((run / "timing.jsonl").read_text().splitlines()[0])
    return timing["samples_per_second"], peak / 1024
