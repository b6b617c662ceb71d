"""Busy machines: beside other programs, the default number of threads may cost at most 1.5 times as much as one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

import numpy as np

from torture.attempts import Draws
from torture.subjects import Subjects

MOST = 1.5
_ROUNDS = 3
_NETWORK = ("--network", "mlp:hidden=512", "--batch-size", "128", "--max-epochs", "2", "--no-figures")


def trial(subjects: Subjects, draws: Draws, folder: Path) -> str | None:
    """Seconds of an epoch with default threads over those with one, in turn, beside two programs that compute."""
    data = folder / "rows.npy"
    np.save(data, np.random.default_rng(draws.number).random((1500, 784), dtype=np.float32))
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    ratios = []
    try:
        for number in range(_ROUNDS):
            one = _seconds(data, folder / f"one-{number}", "--threads", "1")
            ratios.append(_seconds(data, folder / f"default-{number}") / one)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    return f"{median(ratios):.2f} times the seconds of one thread" if median(ratios) > MOST else None


def _seconds(data: Path, run: Path, *options: str) -> float:
    """Seconds of the last epoch, in a new interpreter: OpenMP reads its settings when it is loaded."""
    words = [sys.executable, "-m", "wiseale", "train", str(data), *_NETWORK, *options, "--out", str(run)]
    environment = {"PATH": "/usr/bin:/bin"}
    subprocess.run(words, check=True, capture_output=True, env=environment)
    return float(json.loads((run / "timing.jsonl").read_text().splitlines()[-1])["seconds"])
