"""Training from files: private memory while the file grows tenfold, and speed beside a set that is held in memory."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.table import Table

SHAPE = (3, 64, 64)
HELD, MAPPED = 40_000, 45_000  # images just below and just above what is converted once and kept
BLOCK = 5_000


def measure(quick: bool) -> list[Table]:
    sizes = (HELD, MAPPED) if quick else (HELD, MAPPED, 10 * MAPPED)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for images in sizes:
            path = Path(folder) / "images.npy"
            write(path, images)
            rate, private = train(path, Path(folder) / f"run-{images}")
            read = "held in memory" if images <= HELD else "mapped"
            rows.append((images, path.stat().st_size / 1e9, read, rate, private))
    caption = (
        "One epoch of a small convolutional WiSE-ALE over a file of uint8 images, 1 thread, through the command line: "
        "images per second, and the largest private memory (RssAnon) seen while it ran, in MB."
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


def train(path: Path, run: Path) -> tuple[float, float]:
    """Samples per second, and megabytes of private memory at most."""
    command = [sys.executable, "-m", "wiseale", "train", path, "--out", run, "--max-epochs", "1", "--threads", "1"]
    command += ["--network", "conv2d:channels=8,16,hidden=64", "--latent-dim", "4"]
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)
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
