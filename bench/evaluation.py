"""Seconds and memory of every estimate of the aggregate KL of 60,000 posteriors in 2-D: a whole MNIST."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import torch
from torch import Tensor

from bench.packing import watched
from bench.table import Table
from wiseale.divergences import kl_aggregate_lower_bound, kl_aggregate_mc, kl_aggregate_upper_bound
from wiseale.posterior import Posterior

ESTIMATORS: dict[str, Callable[[Posterior], Tensor]] = {
    "jensen": lambda q: kl_aggregate_upper_bound(q, "jensen"),
    "bhattacharyya": lambda q: kl_aggregate_upper_bound(q, "bhattacharyya"),
    "tightest": lambda q: kl_aggregate_upper_bound(q, "tightest"),
    "lower": kl_aggregate_lower_bound,
    "mc": lambda q: kl_aggregate_mc(q, generator=torch.Generator().manual_seed(0)),
}


@torch.no_grad()
def measure(quick: bool) -> list[Table]:
    n, rows = 12_000 if quick else 60_000, []
    q = posteriors(n)
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for name, estimator in ESTIMATORS.items():
            estimator(posteriors(2_000))  # a warm-up
            with watched() as peak:
                started, worked = time.perf_counter(), time.process_time()
                estimator(q)
                seconds, cpu = time.perf_counter() - started, time.process_time() - worked
            rows.append((name, threads, seconds, cpu, peak["self"] / 1e6))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    caption = (
        f"Aggregate KL of {n:,} posteriors in 2-D, computed in float64: seconds by the clock and of processor time "
        f"(waiting for the other thread included), growth of memory; the process never held more than {most:.0f} MB in "
        "all. Limits: 60 s each on 2 threads at 60,000, and 1 GB."
    )
    return [Table("evaluation", caption, ("estimator", "threads", "seconds", "CPU seconds", "growth, MB"), tuple(rows))]


def posteriors(n: int) -> Posterior:
    """About what an encoder gives: means as the prior, widths around 0.1 that differ by factors."""
    noise = torch.Generator().manual_seed(0)
    mu = torch.randn(n, 2, generator=noise)
    return Posterior(mu, 0.1 * torch.exp(0.7 * torch.randn(n, 2, generator=noise)))
