"""How fast teapots are made, colour included, and how much memory that takes: `python -m bench.teapot [--quick]`."""

from __future__ import annotations

import resource
import sys
import time

from wiseale.data.teapot import Teapot


def measure(quick: bool) -> list[dict[str, float | int]]:
    """Images per second for one worker and for two, in turn, best of several rounds; peak memory after n and 4·n."""
    n, rounds = (1024, 4) if quick else (2048, 6)
    best = {1: 0.0, 2: 0.0}
    _rate(n, 1)
    for _ in range(rounds):
        for workers in best:
            best[workers] = max(best[workers], _rate(n, workers))
    before = _peak()
    _rate(4 * n, 2)
    grown = _peak() - before
    return [
        {"workers": workers, "images": n, "images_per_second": rate, "peak_growth_at_4n_mb": grown}
        for workers, rate in best.items()
    ]


def _rate(n: int, workers: int) -> float:
    start = time.perf_counter()
    made = sum(len(images) for images, _ in Teapot().chunks(0, n, workers))
    return made / (time.perf_counter() - start)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    for row in measure(quick="--quick" in sys.argv[1:]):
        print("  ".join(f"{name} {value:.0f}" for name, value in row.items()))
