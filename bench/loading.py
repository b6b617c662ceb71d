"""Batches a second from our reader beside torch's DataLoader over a dataset of single items."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from bench.table import Table, ratio_of_medians
from wiseale.data import load_dataset
from wiseale.data.dataset import Rows
from wiseale.training import batches as reading
from wiseale.training.batches import Batches

BATCH = 64


class Items(Dataset[torch.Tensor]):
    """What one writes by hand: an item at a time, as float32 or as the bytes it is stored in."""

    def __init__(self, x: np.ndarray, as_float: bool) -> None:
        self.x = x
        self.as_float = as_float

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> torch.Tensor:
        item = torch.from_numpy(np.array(self.x[index]))
        return item.float().mul_(1 / 255) if self.as_float else item


def measure(quick: bool) -> list[Table]:
    torch.set_num_threads(2)
    rows, repeats = [], 5 if quick else 9
    for name, x, in_memory, as_float in sources(quick):
        contenders = {
            "ours": ours(x, in_memory, as_float),
            "DataLoader": theirs(x, 0, as_float),
            "DataLoader, 2 workers": theirs(x, 2, as_float),
        }
        times: dict[str, list[float]] = {contender: [] for contender in contenders}
        for _ in range(repeats):
            for contender, epoch in contenders.items():
                started = time.perf_counter()
                epoch()
                times[contender].append(time.perf_counter() - started)
        best_rival = min((times[c] for c in contenders if c != "ours"), key=median)
        rows.append(
            (
                name,
                len(x) / median(times["ours"]),
                *(len(x) / median(times[c]) for c in list(contenders)[1:]),
                ratio_of_medians(best_rival, times["ours"]),
            )
        )
    caption = (
        f"Rows per second in batches of {BATCH}, 2 threads, medians of {repeats} interleaved epochs. "
        "Bytes are what goes to an accelerator, which widens them itself."
    )
    columns = ("data", "wiseale", "DataLoader", "DataLoader, 2 workers", "wiseale / best DataLoader")
    return [Table("loading", caption, columns, tuple(rows))]


def sources(quick: bool) -> Iterator[tuple[str, np.ndarray, bool, bool]]:
    n = 6_400 if quick else 25_600
    yield "MNIST, in memory, float32", np.asarray(load_dataset("mnist").train.x[:n]), True, True
    teapots = load_dataset(f"teapot:n={n // 2}").train.x
    yield "packed 64x64x3, memory-mapped, bytes", teapots, False, False
    yield "packed 64x64x3, memory-mapped, float32", teapots, False, True


def ours(x: np.ndarray, in_memory: bool, as_float: bool) -> Callable[[], None]:
    limit = reading._IN_MEMORY_BYTES
    reading._IN_MEMORY_BYTES = limit if in_memory else 0
    batches = Batches(Rows(x, "unit"))
    reading._IN_MEMORY_BYTES = limit

    read = batches.read if as_float else batches.gather

    def epoch() -> None:
        order = torch.randperm(len(batches))
        for start in range(0, len(batches) - BATCH + 1, BATCH):
            read(order[start : start + BATCH])

    return epoch


def theirs(x: np.ndarray, workers: int, as_float: bool) -> Callable[[], None]:
    loader = DataLoader(Items(x, as_float), batch_size=BATCH, shuffle=True, drop_last=True, num_workers=workers)

    def epoch() -> None:
        for _ in loader:
            pass

    return epoch
