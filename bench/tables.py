"""CSV files of three shapes: CPU time beside pandas' C reader and polars, and memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from bench.table import Table
from wiseale.data.source import file_reader, load_path
from wiseale.data.tables.blocks import select

_COLOURS = ("red", "green", "blue", "dark red")


def measure(quick: bool) -> list[Table]:
    """CPU seconds, the least of several interleaved repetitions."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for shape, path in _files(Path(folder), 10 if quick else 1).items():
            readers: tuple[Callable[[Path], object], ...] = (pd.read_csv, pl.read_csv, _read, _load)
            best = [float("inf")] * len(readers)
            for _ in range(2 if quick else 7):
                for i, reader in enumerate(readers):
                    start = time.process_time()
                    reader(path)
                    best[i] = min(best[i], time.process_time() - start)
            pandas, _, read, load = best
            rows.append((shape, path.stat().st_size / 1e6, *best, read / pandas, load / pandas, _memory(path)))
    return [
        Table(
            "tables",
            "CPU seconds for CSV files, interleaved, least of 7: `pandas.read_csv`, `polars.read_csv`, one pass of "
            "wiseale over every column (cells, and numbers where they are), and `load_path`, which for the mixed "
            "table reads it twice, decides the kinds of its columns and encodes them; megabytes that one pass "
            "allocates at most, and for a file ten times as long.",
            ("file", "MB", "pandas", "polars", "pass", "load", "pass / pandas", "load / pandas", "memory, MB"),
            tuple(rows),
        )
    ]


def _files(folder: Path, shorter: int) -> dict[str, Path]:
    draws = np.random.default_rng(0)
    numbers = pd.DataFrame(draws.normal(size=(150_000 // shorter, 10)))
    wide = pd.DataFrame(draws.normal(size=(300 // shorter, 10_000)).round(6))
    n = 400_000 // shorter
    i, scores = np.arange(n), draws.normal(size=n).round(3)
    mixed = pd.DataFrame(
        {
            "id": [f"r{k}" for k in i],
            "price": draws.normal(size=n).round(4),
            "quantity": draws.integers(0, 50, n),
            "colour": np.array(_COLOURS)[i % 4],
            "shop": [f"shop {k % 97}" for k in i],
            "when": [f"2020-{1 + k % 12:02}-{1 + k % 28:02}" for k in i],
            "flag": np.where(i % 3 > 0, "yes", "no"),
            "score": np.where(i % 9 == 2, np.nan, scores),
            "note": [f"text {k * 7919 % 100_003} end" for k in i],
            "ratio": draws.random(n).round(12),
        }
    )
    frames = {"numbers, 10 columns": numbers, "numbers, 10,000 columns": wide, "mixed, 10 columns": mixed}
    paths = {}
    for number, (shape, frame) in enumerate(frames.items()):
        paths[shape] = folder / f"{number}.csv"
        frame.rename(columns=lambda name: f"c{name}" if isinstance(name, int) else name).to_csv(
            paths[shape], index=False
        )
    return paths


def _read(path: Path) -> int:
    names, reader = file_reader(path, "").open(path)  # type: ignore[attr-defined]
    rows = 0
    for block in reader.raw(select(path.name, names)):
        for column in block.columns:
            column.as_numbers()
        rows += len(block)
    return rows


def _load(path: Path) -> int:
    return len(load_path(str(path)).train)


def _memory(path: Path) -> str:
    """What Arrow and Python allocate at most in a fresh process, for the file and for one ten times as long."""
    allocated = []
    text = path.read_bytes()
    header = text.index(b"\n") + 1
    longer = path.with_name("longer.csv")
    with longer.open("wb") as file:
        file.write(text)
        for _ in range(9):
            file.write(text[header:])
    for each in (path, longer):
        code = f"from bench import tables; tables.print_memory({str(each)!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        allocated.append(done.stdout.strip())
    longer.unlink()
    return ", ".join(allocated)


def print_memory(path: str) -> None:
    """Megabytes that one pass over a file allocates at most."""
    tracemalloc.start()
    _read(Path(path))
    print(f"{(pa.default_memory_pool().max_memory() + tracemalloc.get_traced_memory()[1]) / 1e6:.0f}")
