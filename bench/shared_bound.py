"""The bound of a batch on two ranks: every rank computes all of it, or each its share of the rows."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from statistics import fmean, median

import torch
import torch.distributed as dist

from bench.kernel import some_posterior
from bench.local_ranks import on_ranks
from bench.table import Table
from wiseale.divergences import kl_aggregate_upper_bound
from wiseale.objectives.shared_bound import shared_rows
from wiseale.posterior import Posterior, SharedRows
from wiseale.processes.collectives import gather, split_batch
from wiseale.processes.group import process_group
from wiseale.processes.world import World, from_environment

FULL = ((64, 4), (128, 4), (256, 4), (256, 64), (512, 4), (512, 64), (1024, 64), (2048, 64), (4096, 64), (8192, 64))
QUICK = ((64, 4), (512, 64), (2048, 64))

Bound = Callable[[Posterior], tuple[torch.Tensor, ...]]


def measure(quick: bool) -> list[Table]:
    """Both ways alternate on the same two ranks."""
    sizes, repeats = (QUICK, 5) if quick else (FULL, 11)
    rows = on_ranks("bench.shared_bound", [json.dumps([sizes, repeats])], 2)[0]
    caption = (
        "Jensen bound of M posteriors, forward and backward, on 2 ranks with 1 thread each, both ways alternating for "
        f"{repeats} rounds (6 from M = 4,096 on): milliseconds by the clock (the slower rank, fastest round) and of "
        "processor time (mean of the ranks, median round). Shared: each rank computes M/2 rows, and the ranks exchange "
        "M sums. Difference: of the shared gradient, relative to the whole one. Training: which of the two it chooses."
    )
    columns = ("M", "d_z", "all", "shared", "ratio", "CPU, all", "CPU, shared", "CPU ratio", "difference", "training")
    return [Table("shared_bound", caption, columns, tuple(tuple(row) for row in rows))]


def whole(q: Posterior) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad(kl_aggregate_upper_bound(q), (q.mu, q.sigma))


def shared(world: World) -> Bound:
    def bound(q: Posterior) -> tuple[torch.Tensor, ...]:
        rows = SharedRows(world.part(len(q)), gather)
        return torch.autograd.grad(kl_aggregate_upper_bound(q, shared=rows), (q.mu, q.sigma))

    return bound


def one_rank(world: World, sizes: list[tuple[int, int]], repeats: int) -> list[list[str | float]]:
    rows: list[list[str | float]] = []
    with split_batch(world):
        for m, d in sizes:
            q, part = some_posterior(m, d), world.part(m)
            ways = (whole, shared(world))
            wall, cpu = alternated(ways, q, max(1, int(1e6 / (m * m))), repeats if m < 4096 else 6)
            fastest, usual = [min(seen) for seen in wall], [median(seen) for seen in cpu]
            pairs = zip(*(way(q) for way in ways), strict=True)
            off = max(float((ours[part] - theirs[part]).norm() / theirs[part].norm()) for theirs, ours in pairs)
            times = (*fastest, fastest[0] / fastest[1], *usual, usual[0] / usual[1])
            rows.append([m, d, *times, off, "all" if shared_rows(q) is None else "shared"])
    return rows


def alternated(ways: Sequence[Bound], q: Posterior, calls: int, repeats: int) -> tuple[list[list[float]], ...]:
    """Milliseconds of each way in every round: by the clock of the slower rank, and of processor time, their mean."""
    wall: list[list[float]] = [[] for _ in ways]
    cpu: list[list[float]] = [[] for _ in ways]
    for number in range(repeats + 1):
        for i, way in enumerate(ways):
            dist.barrier()
            started, worked = time.perf_counter(), time.process_time()
            for _ in range(calls):
                way(q)
            seconds = torch.tensor([time.perf_counter() - started, time.process_time() - worked]) * (1e3 / calls)
            both = [torch.empty_like(seconds) for _ in range(dist.get_world_size())]
            dist.all_gather(both, seconds)
            if number:  # the first warms up
                wall[i].append(max(float(each[0]) for each in both))
                cpu[i].append(fmean(float(each[1]) for each in both))
    return wall, cpu


if __name__ == "__main__":
    torch.set_num_threads(1)
    here = from_environment()
    with process_group(here, "cpu"):
        asked_sizes, asked_repeats = json.loads(sys.argv[1])
        found = one_rank(here, [tuple(size) for size in asked_sizes], asked_repeats)
    print(json.dumps(found))
