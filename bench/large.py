"""A set of a billion images: opening it, reading its first batch, and the order of an epoch.

The set is a manifest over sparse files (``bench.sparse_pack``), which have never been verified, so that every block
that is read is also compared with its checksum. Each set is opened in a process of its own; seconds are processor time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import tracemalloc
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from bench.sparse_pack import write_sparse_pack
from bench.table import Table
from wiseale.data.packs import layout

SHAPE = (3, 64, 64)
BATCH = 256


@dataclass(frozen=True)
class Spent:
    """What a process has used since it began to open the set; the peak is of all its memory, with torch."""

    seconds: float
    processor_seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class Opening:
    """A set opened and its first batch read."""

    rows: int
    held_out: int
    before_bytes: int
    opened: Spent
    first_batch: Spent


def opened_in_a_process(path: Path) -> Opening:
    """Open a packed set in a new process and prepare training until the first batch is read."""
    run = subprocess.run(
        [sys.executable, "-m", "bench.large", str(path)], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parents[1],
    )  # fmt: skip
    found = json.loads(run.stdout)
    spent = {name: Spent(**found.pop(name)) for name in ("opened", "first_batch")}
    return Opening(**found, **spent)


def open_here(path: str) -> Opening:
    """Open a packed set, split it, fit mean and scale, build a network and read the first batch."""
    import torch

    from wiseale.config import TrainConfig
    from wiseale.data import load_dataset
    from wiseale.randomness import shuffled
    from wiseale.training.plan import resolve
    from wiseale.training.setup import Work

    torch.set_num_threads(1)
    before = peak_bytes()
    started, used = time.perf_counter(), time.process_time()

    def spent() -> Spent:
        return Spent(time.perf_counter() - started, time.process_time() - used, peak_bytes())

    dataset = load_dataset(path)
    opened = spent()
    asked = TrainConfig(data=path, network="conv2d:start=none", batch_size=BATCH, max_epochs=1, threads=1)
    work = Work.prepare(resolve(asked, dataset), dataset)
    order = shuffled(len(work.train), work.plan.seed, "order", 0)
    x = work.train.read_part(order[:BATCH], 0, slice(0, BATCH))
    assert x.shape == (BATCH, *SHAPE)
    assert work.held_out is not None
    return Opening(len(dataset.train), len(work.held_out), before, opened, spent())


def peak_bytes() -> int:
    """Peak resident memory of this program; ``getrusage`` would count the process that started it, before exec."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def measure(quick: bool) -> list[Table]:
    return [_opening(quick), _order(quick), _loading(quick)]


def _loading(quick: bool) -> Table:
    """Epochs over one file, over shards, and over shards whose blocks are still to be verified."""
    import numpy as np

    from wiseale.data.packs.pack import pack_chunks

    x = np.random.default_rng(0).integers(0, 256, (8192, *SHAPE), np.uint8)
    kept, repeats = layout.SHARD_BYTES, 5 if quick else 15
    with tempfile.TemporaryDirectory() as folder:
        try:
            pack_chunks(Path(folder) / "file", len(x), SHAPE, [x], {})
            layout.SHARD_BYTES = 1 << 22
            pack = pack_chunks(Path(folder) / "shards", len(x), SHAPE, [x], {})
            shards = len(pack.metadata.layout.files())
        finally:
            layout.SHARD_BYTES = kept
        stamps = Path(folder) / "shards.verified"
        times: dict[str, list[float]] = {"one file": [], "shards": [], "shards, first epoch": [], "then": []}
        for _ in range(repeats):
            times["one file"].append(_epochs(Path(folder) / "file")[1])
            times["shards"].append(_epochs(Path(folder) / "shards")[1])
            stamps.unlink()
            first, then = _epochs(Path(folder) / "shards")
            times["shards, first epoch"].append(first)
            times["then"].append(then)
    base = median(times["one file"])
    rows = tuple((name, median(spent) / len(x) * 1e6, median(spent) / base) for name, spent in times.items())
    caption = (
        f"Batches of {BATCH} from 100 MB of packed 64x64x3 images in one file and in {shards} shards, float32, "
        f"one thread: processor time, medians of {repeats} alternating openings. In the first epoch after "
        "copying a set every block is compared with its checksum."
    )
    return Table("large_loading", caption, ("packed as", "us a row", "over one file"), rows)


def _epochs(path: Path) -> tuple[float, float]:
    """Processor seconds of the first and of the second epoch after opening; the pages are in memory."""
    import torch

    from wiseale.data.dataset import Rows
    from wiseale.data.packs.pack import open_pack
    from wiseale.training import batches as reading
    from wiseale.training.batches import Batches

    torch.set_num_threads(1)
    limit, reading._IN_MEMORY_BYTES = reading._IN_MEMORY_BYTES, 0
    batches = Batches(Rows(open_pack(path).x, "unit"))
    reading._IN_MEMORY_BYTES = limit
    order = torch.randperm(len(batches), generator=torch.Generator().manual_seed(0))
    spent = []
    for _ in range(2):
        started = time.process_time()
        for rows in order.split(BATCH):
            batches.read(rows)
        spent.append(time.process_time() - started)
    return spent[0], spent[1]


def _opening(quick: bool) -> Table:
    rows = []
    cases = [(10**9, 4.0)] if quick else [(10**7, 4.0), (10**9, 0.5), (10**9, 1.0), (10**9, 4.0), (10**9, 16.0)]
    kept = layout.SHARD_BYTES
    for n, size in cases:
        with tempfile.TemporaryDirectory() as folder:
            try:
                layout.SHARD_BYTES = int(size * (1 << 30))
                shards = write_sparse_pack(Path(folder) / "set", n, SHAPE)
            finally:
                layout.SHARD_BYTES = kept
            found = opened_in_a_process(Path(folder) / "set")
        opened, first = found.opened, found.first_batch
        memory = (opened.peak_bytes - found.before_bytes) / 1e6
        rows.append(
            (n, size, shards, opened.processor_seconds, memory, opened.peak_bytes / 1e6, first.processor_seconds)
        )
    caption = (
        "Packed 64x64x3 images in sparse files, never verified before: opened, then prepared for training until the "
        f"first batch of {BATCH} is read. Seconds of processor time since the beginning of opening, one "
        "thread; memory that opening added, and the whole process with torch."
    )
    names = ("rows", "GiB per shard", "shards", "opened, s", "added, MB", "process, MB", "first batch, s")
    return Table("large", caption, names, tuple(rows))


def _order(quick: bool) -> Table:
    from wiseale.randomness import MOST_LISTED, KeyedOrder, permutation

    rows = []
    for n in (MOST_LISTED, 10**9):
        for name in ("list", "computed"):
            if name == "list" and n > MOST_LISTED:
                rows.append((n, name, "-", "-", n * 8 / 1e6))
                continue
            tracemalloc.start()
            started = time.process_time()
            order = permutation(n, 0, "order", 0) if name == "list" else KeyedOrder(n, 0)
            order[:BATCH]
            first = time.process_time() - started
            peak = tracemalloc.get_traced_memory()[1] if name == "computed" else n * 8
            tracemalloc.stop()
            started, batches = time.process_time(), 256 if quick else 4096
            for s in range(batches):
                order[s * BATCH : (s + 1) * BATCH]
            rows.append((n, name, first, (time.process_time() - started) / batches * 1e6, peak / 1e6))
    caption = (
        "The order of an epoch: all row numbers in a list, or computed where they are read (a Feistel network). "
        f"Processor time until the first batch of {BATCH} is known, then per batch; memory, for the list 8 bytes a row."
    )
    return Table("large_order", caption, ("rows", "order", "first, s", "a batch, us", "MB"), tuple(rows))


if __name__ == "__main__":
    print(json.dumps(asdict(open_here(sys.argv[1]))))
