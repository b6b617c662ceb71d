"""How fast teapots are made, colour included, and how much memory that takes: `python -m bench.teapot [--quick]`."""

from __future__ import annotations

import resource
import sys
import time

from wiseale.paper.teapot import Teapot


def measure(quick: bool) -> list[dict[str, float | int]]:
    """Images per second for one worker and for two, in turn, best of several rounds; growth of the peak at 4·n.

    Beside it the processor's share: where other programs use the machine, two workers get less than two cores.
    """
    n, rounds = (1024, 4) if quick else (2048, 6)
    best = {1: (0.0, 0.0), 2: (0.0, 0.0)}
    _rate(n, 1)
    for _ in range(rounds):
        for workers in best:
            best[workers] = max(best[workers], _rate(n, workers))
    before = _peak()
    _rate(4 * n, 2)
    grown = _peak() - before
    return [
        {"workers": workers, "images": n, "images_per_second": rate, "cores_used": cores, "peak_growth_at_4n_mb": grown}
        for workers, (rate, cores) in best.items()
    ]


def _rate(n: int, workers: int) -> tuple[float, float]:
    """Images per second, and the cores that were to be had for it."""
    start, worked = time.perf_counter(), time.process_time()
    made = sum(len(images) for images, _ in Teapot().chunks(0, n, workers))
    seconds = time.perf_counter() - start
    return made / seconds, (time.process_time() - worked) / seconds


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    for row in measure(quick="--quick" in sys.argv[1:]):
        print("  ".join(f"{name} {value:.4g}" for name, value in row.items()))
