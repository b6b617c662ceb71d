"""Costs of a training step, measured on this machine: what the simulator multiplies."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import fmean, median

import torch
import torch.distributed as dist

from bench.kernel import some_posterior
from bench.local_ranks import on_ranks
from bench.plain import LR, Case
from bench.training import Quiet, model_of
from wiseale.data.dataset import Rows
from wiseale.divergences import tiled
from wiseale.divergences.pairwise import OVERLAP, log_mean_pairs
from wiseale.objectives import make_objective
from wiseale.posterior import Posterior, SharedRows
from wiseale.processes.group import process_group
from wiseale.processes.world import World, from_environment
from wiseale.training.batches import Batches
from wiseale.training.learner import Learner
from wiseale.training.loop import fit
from wiseale.training.plan import Plan
from wiseale.training.schedule import Constant

CHECK_BATCH, CHECK_STEPS = 512, 6


@dataclass(frozen=True)
class Costs:
    """Seconds of processor time of one thread, forward and backward, and sizes.

    Attributes:
        pair: per pair of a rank's rows and all columns, in C.
        kept_pair: of a whole bound of at most 2,048 posteriors, whose pairs are kept for the gradient.
        whole_pair: of a larger one, whose pairs are computed again.
        tiled_pair: in torch's tiles.
        per_row: a row through the network.
        fixed: what a step costs whatever its rows: the optimiser.
        parameters: numbers that are learned.
        kept_per_row: bytes kept for the backward pass.
        per_byte: to send, receive and add a byte of an exchange, where the processor does that.
    """

    pair: float
    kept_pair: float
    whole_pair: float
    tiled_pair: float
    per_row: float = 0.0
    fixed: float = 0.0
    parameters: int = 0
    kept_per_row: float = 0.0
    per_byte: float = 0.0

    def faster(self, times: float) -> Costs:
        """On a machine that computes so many times as fast."""
        names = ("pair", "kept_pair", "whole_pair", "tiled_pair", "per_row", "fixed")
        return replace(self, **{name: getattr(self, name) / times for name in names})


@dataclass(frozen=True)
class Rank:
    """What ranks on this machine measured, in seconds: medians, of processor time the mean of the ranks."""

    batch: int
    slowdown: float
    step: float
    cpu: float
    small_all_reduce: float
    large_all_reduce: float
    large_cpu: float


def bound_costs(rows: int = 1024, latent: int = 64) -> Costs:
    """Seconds per pair of each way to compute the bound."""
    torch.set_num_threads(1)
    q, few = some_posterior(4 * rows, latent), some_posterior(rows, latent)
    share = SharedRows(slice(0, rows), lambda own: own.repeat(4))

    def per_pair(log_means: Callable[[Posterior], torch.Tensor], q: Posterior, pairs: int) -> float:
        return processor_time(lambda: torch.autograd.grad(log_means(q).mean(), (q.mu, q.sigma))) / pairs

    def in_tiles(q: Posterior) -> torch.Tensor:
        return tiled.log_sum_pairs(q, OVERLAP.quadratic, OVERLAP.own, shared=share, keep=0)

    return Costs(
        pair=per_pair(lambda q: log_mean_pairs(q, OVERLAP, share), q, rows * len(q)),
        kept_pair=per_pair(lambda q: log_mean_pairs(q, OVERLAP), few, rows**2),
        whole_pair=per_pair(lambda q: log_mean_pairs(q, OVERLAP), q, len(q) ** 2),
        tiled_pair=per_pair(in_tiles, q, rows * len(q)),
    )


def network_costs(
    network: str, likelihood: str, shape: tuple[int, ...], latent: int, batches: tuple[int, int], bound: Costs
) -> Costs:
    """Costs of AEVB steps, which have no bound, at two batch sizes: a line through both."""
    torch.set_num_threads(1)
    seconds, kept = [], []
    for size in batches:
        case = Case("", network, likelihood, latent, torch.rand(size, *shape).round(), size)
        epoch = epochs(case, "aevb", 1)
        seconds.append(processor_time(epoch))
        kept.append(_bytes_kept(epoch))
    rows = batches[1] - batches[0]
    per_row = (seconds[1] - seconds[0]) / rows
    parameters = sum(parameter.numel() for parameter in model_of(case).parameters())
    fixed = max(0.0, seconds[0] - batches[0] * per_row)
    return replace(bound, per_row=per_row, fixed=fixed, parameters=parameters, kept_per_row=(kept[1] - kept[0]) / rows)


def _bytes_kept(step: Callable[[], object]) -> int:
    """Bytes of the different tensors that autograd keeps in a step."""
    seen: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        step()
    return sum(seen.values())


def processor_time(call: Callable[[], object], repeats: int = 3) -> float:
    """Median seconds of this process's processor time, after a call to warm up."""
    seconds = []
    for number in range(repeats + 1):
        started = time.process_time()
        call()
        if number:
            seconds.append(time.process_time() - started)
    return median(seconds)


def epochs(case: Case, objective: str, steps: int, world: World | None = None) -> Callable[[], object]:
    """A function that trains one more epoch, alone or as a rank."""
    learner = Learner.fresh(model_of(case), make_objective(objective).build(tuple(case.x.shape[1:]), case.latent), LR)
    batches = Batches(Rows(case.x.repeat(steps, *[1] * (case.x.ndim - 1)).numpy()))

    def epoch() -> None:
        plan = Plan(case.batch, learner.progress.epoch + 1, LR, Constant())
        fit(learner, batches, None, plan, Quiet(), world or World())

    return epoch


def ranks_here(ranks: int, repeats: int) -> Rank:
    """Steps, exchanges and slowdown of this many ranks on this machine."""
    return Rank(**on_ranks("bench.costs", [str(repeats)], ranks)[0])


def _busy() -> None:
    a = torch.rand(192, 192)
    for _ in range(300):
        a = (a @ a).softmax(1)


def _one_rank(world: World, repeats: int) -> dict[str, float]:
    """Rank 0's answer: the slowest rank counts by the clock."""
    case = Case("", "paper_mnist", "bernoulli", 64, torch.rand(CHECK_BATCH, 1, 28, 28).round(), CHECK_BATCH)
    epoch = epochs(case, "wise_ale", CHECK_STEPS, world)
    small, large = torch.zeros(1), torch.zeros(1 << 20)
    seen: dict[str, list[float]] = {name: [] for name in ("slowdown", "step", "cpu", "small", "large", "large_cpu")}
    for number in range(repeats + 1):
        busy, worked, _ = _timed(_busy, world)
        step, _, cpu = _timed(epoch, world)
        quick, _, _ = _timed(lambda: _all_reduces(small, world), world)
        slow, _, slow_cpu = _timed(lambda: _all_reduces(large, world), world)
        if number:
            for name, value in zip(seen, (busy / worked, step, cpu, quick / 10, slow / 10, slow_cpu / 10), strict=True):
                seen[name].append(value)
    medians = {name: median(values) for name, values in seen.items()}
    return {
        "batch": CHECK_BATCH,
        "slowdown": max(1.0, medians["slowdown"]),
        "step": medians["step"] / CHECK_STEPS,
        "cpu": medians["cpu"] / CHECK_STEPS,
        "small_all_reduce": medians["small"],
        "large_all_reduce": medians["large"],
        "large_cpu": medians["large_cpu"],
    }


def _all_reduces(tensor: torch.Tensor, world: World) -> None:
    for _ in range(10 if world.size > 1 else 0):
        dist.all_reduce(tensor)


def _timed(call: Callable[[], object], world: World) -> tuple[float, float, float]:
    """Seconds by the clock and of processor time of the slowest rank, and the mean processor time."""
    if world.size > 1:
        dist.barrier()
    started, worked = time.perf_counter(), time.process_time()
    call()
    seconds = torch.tensor([time.perf_counter() - started, time.process_time() - worked], dtype=torch.double)
    everyone = [torch.empty_like(seconds) for _ in range(world.size)]
    if world.size > 1:
        dist.all_gather(everyone, seconds)
    else:
        everyone = [seconds]
    slowest = max(everyone, key=lambda each: float(each[0]))
    return float(slowest[0]), float(slowest[1]), fmean(float(each[1]) for each in everyone)


if __name__ == "__main__":
    torch.set_num_threads(1)
    here = from_environment()
    with process_group(here, "cpu"):
        found = _one_rank(here, int(sys.argv[1]))
    print(json.dumps(found))
