"""Packing a folder of JPEGs against the bare Pillow loop on the same number of processes, and its memory.

The portraits under the data root are listed ten times, so that there is enough to do. Rounds are interleaved;
memory is the anonymous part (``RssAnon``), of the packing process and of its largest worker.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from wiseale.data import default_data_root
from wiseale.data.images import decode
from wiseale.data.images.decode import Form
from wiseale.data.images.folder import pack_images
from wiseale.data.images.listing import Listing, list_images
from wiseale.data.images.pack import Pack, open_pack
from wiseale.platform.machine import cores

FORM = Form(size=64, crop=178, channels=3)


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, on how many images, and the ratio of ours to the bare loop's."""

    what: str
    images: int
    ours: float
    bare: float | None = None
    unit: str = "s"

    @property
    def ratio(self) -> float | None:
        """Ours over the bare loop's."""
        return None if self.bare is None else self.ours / self.bare


def repeated(listing: Listing, times: int) -> Listing:
    """The same images listed several times over."""
    return Listing(listing.origin, listing.entries * times, listing.is_zip)


def bare_one(path: str) -> bytes:
    with Image.open(path) as image:
        width, height = image.size
        left, top = (width - 178) // 2, (height - 178) // 2
        square = image.convert("RGB").crop((left, top, left + 178, top + 178))
    return square.resize((64, 64), Image.Resampling.BILINEAR).tobytes()


def bare(paths: Sequence[str], processes: int) -> None:
    """What anyone would write: decode, crop, resize, in forked processes that keep nothing."""
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for _ in pool.imap_unordered(bare_chunk, [paths[at : at + 32] for at in range(0, len(paths), 32)]):
            pass


def bare_chunk(paths: Sequence[str]) -> int:
    return sum(len(bare_one(path)) for path in paths)


def pack(listing: Listing, folder: Path, processes: int | None = None) -> Pack:
    return pack_images(folder / "pack", listing, FORM, dict, source="benchmark", processes=processes)


def packing_time(listing: Listing, rounds: int, processes: int) -> list[Row]:
    """Median and best time, and the processor time, which other work on the machine disturbs least."""
    paths = [str(listing.origin / entry.name) for entry in listing.entries]
    ours, theirs = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            ours.append(spent(lambda target=Path(folder): pack(listing, target, processes)))
        theirs.append(spent(lambda: bare(paths, processes)))
    table = zip(("median", "best", "processor"), (statistics.median, min, statistics.median), (0, 0, 1), strict=True)
    return [
        Row(
            f"packing, {processes} processes, {name}",
            len(paths),
            middle([times[column] for times in ours]),
            middle([times[column] for times in theirs]),
        )
        for name, middle, column in table
    ]


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock, and of processor time, of this process and those it waited for."""
    start, used = time.perf_counter(), sum(os.times()[:4])
    work()
    return time.perf_counter() - start, sum(os.times()[:4]) - used


def memory(listing: Listing) -> list[Row]:
    """Peak anonymous memory while packing, and then while reading every image once."""
    n = len(listing.entries)
    with tempfile.TemporaryDirectory() as folder:
        with watched() as peak:
            pack(listing, Path(folder))
        rows = [
            Row("memory of the packing process", n, peak["self"] / 1e6, unit="MB"),
            Row("memory of its largest worker", n, peak["workers"] / 1e6, unit="MB"),
        ]
        with watched() as peak:
            x = open_pack(Path(folder) / "pack").x
            for start in range(0, n, 256):
                x[start : start + 256].mean()
        return [*rows, Row("memory of the reading process", n, peak["self"] / 1e6, unit="MB")]


@contextmanager
def watched() -> Iterator[dict[str, int]]:
    """Peak growth of this process's anonymous memory, and peak of its children's, in bytes, sampled 100 times/s."""
    before, peak, stop = anonymous_bytes(os.getpid()), {"self": 0, "workers": 0}, threading.Event()

    def watch() -> None:
        while not stop.wait(0.01):
            peak["self"] = max(peak["self"], anonymous_bytes(os.getpid()) - before)
            peak["workers"] = max([peak["workers"], *(anonymous_bytes(worker) for worker in workers())])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()


def workers() -> Iterator[int]:
    """The decoding processes; a child that is about to become one still has its parent's name and memory."""
    for child in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
        with suppress(OSError):
            if decode.__file__.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                yield int(child)


def anonymous_bytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), 0)


def run(quick: bool = False) -> list[Row]:
    """All measurements; quick: fewer rounds of fewer images."""
    portraits = list_images(default_data_root() / "portraits")
    rounds, times = (3, 3) if quick else (5, 10)
    return [
        *packing_time(repeated(portraits, times), rounds, cores()),
        *packing_time(portraits, rounds, cores()),
        *memory(portraits),
        *memory(repeated(portraits, times)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    for row in run(parser.parse_args().quick):
        against = f"{row.bare:9.2f} bare   ratio {row.ratio:.3f}" if row.bare is not None else ""
        print(f"{row.what:34}{row.images:7,} images{row.ours:9.2f} {row.unit} {against}")


if __name__ == "__main__":
    main()
