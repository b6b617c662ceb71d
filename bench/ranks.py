"""Two ranks with one thread each beside one process with one thread, through the command line."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.table import Table, ratio_of_medians

ROWS, EPOCHS = 12_288, 4


def measure(quick: bool) -> list[Table]:
    repeats = 2 if quick else 5
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        sets = (f"sine:n={ROWS},n_test=64", f"mnist:n={ROWS}")
        for data, objective, batch in itertools.product(sets, ("aevb", "wise_ale"), (64, 512, 2048)):
            rates: dict[int, list[float]] = {1: [], 2: []}
            for repeat in range(repeats):
                for processes, measured in rates.items():
                    run = Path(folder) / f"{data[:4]}-{objective}-{batch}-{processes}-{repeat}"
                    measured.append(rate(data, objective, batch, processes, run))
            name = data.partition(":")[0]
            rows.append((name, objective, batch, *map(median, rates.values()), ratio_of_medians(rates[2], rates[1])))
    caption = (
        f"The paper's networks, one thread per process: samples per second, the fastest of {EPOCHS} epochs of {ROWS} "
        f"rows, medians of {repeats} interleaved runs. A small batch leaves little to share: half of it takes more "
        "than half the time, and every step waits for the slower rank."
    )
    columns = ("data", "objective", "global batch", "1 process", "2 processes", "ratio")
    return [Table("ranks", caption, columns, tuple(rows))]


def rate(data: str, objective: str, batch: int, processes: int, run: Path) -> float:
    command = [sys.executable, "-m", "wiseale", "train", data, "--objective", objective, "--out", str(run)]
    command += ["--batch-size", str(batch), "--max-epochs", str(EPOCHS), "--processes", str(processes)]
    command += ["--threads", "1", "--held-out", "0"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    lines = (run / "timing.jsonl").read_text().splitlines()
    return float(max(json.loads(line)["samples_per_second"] for line in lines))
