"""Batches a second from our reader beside torch's DataLoader over a dataset of single items."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from bench.plain import Epoch
from bench.table import Table, ratio_of_medians
from bench.training import interleaved
from wiseale.data import load_dataset
from wiseale.data.dataset import Rows
from wiseale.training import batches as reading
from wiseale.training.batches import Batches

BATCH = 64


class Items(Dataset[torch.Tensor]):
    """An item at a time, as float32 or as the bytes it is stored in: as lean as we could write it, or as usual."""

    def __init__(self, x: np.ndarray, as_float: bool, lean: bool = True) -> None:
        self.x = x
        self.as_float = as_float
        self.lean = lean

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> torch.Tensor:
        if not self.lean:
            return torch.tensor(self.x[index], dtype=torch.float32) / 255
        item = torch.from_numpy(np.array(self.x[index]))
        return item.float().mul_(1 / 255) if self.as_float else item


def measure(quick: bool) -> list[Table]:
    torch.set_num_threads(2)
    rows, repeats = [], 5 if quick else 9
    for name, x, in_memory, as_float in sources(quick):
        contenders = {
            "wiseale": ours(x, in_memory, as_float),
            "DataLoader": theirs(Items(x, as_float), 0),
            "DataLoader, 2 workers": theirs(Items(x, as_float), 2),
        }
        if as_float:
            contenders["as usually written"] = theirs(Items(x, as_float, lean=False), 0)
        times = interleaved(contenders, repeats)
        best_rival = min(times["DataLoader"], times["DataLoader, 2 workers"], key=median)
        rates = {contender: len(x) / median(seconds) for contender, seconds in times.items()}
        usual = rates["wiseale"] / rates["as usually written"] if as_float else "-"
        shown = [*rates.values()] if as_float else [*rates.values(), "-"]
        rows.append((name, *shown, ratio_of_medians(best_rival, times["wiseale"]), usual))
    caption = (
        f"Rows per second in batches of {BATCH}, 2 threads, medians of {repeats} interleaved epochs. The items of the "
        "first two DataLoaders are as lean as we could write them; usually an item is `torch.tensor(x[i]) / 255`. "
        "Bytes are what goes to an accelerator, which widens them itself."
    )
    names = ("data", "wiseale", "DataLoader", "DataLoader, 2 workers", "as usually written")
    return [Table("loading", caption, (*names, "wiseale / best DataLoader", "wiseale / usual"), tuple(rows))]


def sources(quick: bool) -> Iterator[tuple[str, np.ndarray, bool, bool]]:
    n = 6_400 if quick else 25_600
    yield "MNIST, in memory, float32", np.asarray(load_dataset("mnist").train.x[:n]), True, True
    teapots = load_dataset(f"teapot:n={n // 2}").train.x
    yield "packed 64x64x3, memory-mapped, bytes", teapots, False, False
    yield "packed 64x64x3, memory-mapped, float32", teapots, False, True


def ours(x: np.ndarray, in_memory: bool, as_float: bool) -> Epoch:
    limit = reading._IN_MEMORY_BYTES
    reading._IN_MEMORY_BYTES = limit if in_memory else 0
    batches = Batches(Rows(x, "unit"))
    reading._IN_MEMORY_BYTES = limit

    read = batches.read if as_float else batches.gather

    def epoch() -> float:
        started = time.perf_counter()
        order = torch.randperm(len(batches))
        for start in range(0, len(batches) - BATCH + 1, BATCH):
            read(order[start : start + BATCH])
        return time.perf_counter() - started

    return epoch


def theirs(items: Items, workers: int) -> Epoch:
    loader = DataLoader(items, batch_size=BATCH, shuffle=True, drop_last=True, num_workers=workers)

    def epoch() -> float:
        started = time.perf_counter()
        for _ in loader:
            pass
        return time.perf_counter() - started

    return epoch
