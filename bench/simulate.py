"""The plan for a billion images on 1 to 1,024 ranks: costs measured here, a network as stated, and what breaks first.

The model, per step of R ranks with m rows each (M = m·R) and no overlap of computing and exchanging:

    network    fixed + m · per_row
    bound      m · M pairs where rows are shared, M² where every rank computes all of it
    exchange   posteriors: ring all-gather of 8·M·d_z bytes; sums: ring all-gather of 4·M bytes;
               gradients: ring all-reduce of 4·P bytes, in buckets of 25 MB;
               and processor time for each byte sent, where ranks are on one machine
    ring       an all-gather of n bytes takes (R − 1)·latency + (R − 1)/R · n/bandwidth, an all-reduce twice that

More ranks than cores take turns: computing takes as many times longer as R busy processes were slowed down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench.costs import Costs, Rank, bound_costs, network_costs, ranks_here
from bench.table import Table

RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
BUCKET_BYTES = 25 << 20  # of DistributedDataParallel
KERNEL_ROWS = 1 << 14  # posteriors up to which the bound is computed in C
KEPT_ROWS = 1 << 11  # posteriors up to which C keeps the pairs of a whole bound, and computes half of them
DAY = 86_400.0


@dataclass(frozen=True)
class Network:
    """Seconds for a message to the next rank, and bytes per second of a link."""

    latency: float
    bandwidth: float

    def all_gather(self, ranks: int, size: float) -> float:
        """Seconds of a ring all-gather whose result has ``size`` bytes."""
        return (ranks - 1) * self.latency + (ranks - 1) / ranks * size / self.bandwidth

    def all_reduce(self, ranks: int, size: float) -> float:
        """Seconds of a ring all-reduce: a reduce-scatter and an all-gather."""
        return 2 * self.all_gather(ranks, size)


@dataclass(frozen=True)
class Plan:
    """N rows in batches of m rows per rank, codes of size d_z."""

    rows: float = 1e9
    per_rank: int = 256
    latent: int = 64
    row_bytes: int = 64 * 64 * 3


@dataclass(frozen=True)
class Step:
    """What one rank does in a step: seconds, bytes it sends, bytes it holds."""

    network: float
    whole_bound: float
    bound: float
    exchange: float
    sent: float
    memory: float

    @property
    def seconds(self) -> float:
        """Of the whole step, with the rows of the bound shared."""
        return self.network + self.bound + self.exchange


def step(plan: Plan, costs: Costs, network: Network, ranks: int, slowdown: float = 1.0) -> Step:
    """The model of the module's docstring."""
    m, total, d = plan.per_rank, plan.per_rank * ranks, plan.latent
    gradients = 4.0 * costs.parameters
    buckets = math.ceil(gradients / BUCKET_BYTES)
    exchange = network.all_gather(ranks, 8.0 * total * d) + network.all_gather(ranks, 4.0 * total)
    exchange += network.all_reduce(ranks, gradients) + 2 * (buckets - 1) * (ranks - 1) * network.latency
    sent = (ranks - 1) / ranks * (8.0 * total * d + 4.0 * total + 2 * gradients)
    # Weights, gradients and Adam's two moments; what the backward pass keeps; twelve tensors (M, d_z): posteriors as
    # gathered, apart and by columns, their gradients, noise and codes; log k of the rank's pairs, if it is kept.
    memory = 16.0 * costs.parameters + m * costs.kept_per_row + 48.0 * total * d + min(4 * m * total, 1 << 24)
    whole = total**2 * _whole_pair(costs, total)
    rows = m * total * (costs.pair if total <= KERNEL_ROWS else costs.tiled_pair)
    return Step(
        network=slowdown * (costs.fixed + m * costs.per_row),
        whole_bound=slowdown * whole,
        bound=slowdown * (rows if ranks > 1 else whole),
        exchange=exchange + slowdown * costs.per_byte * sent,
        sent=sent,
        memory=memory,
    )


def _whole_pair(costs: Costs, total: int) -> float:
    """Seconds of a pair of the whole bound; torch's tiles then compute every pair once, in place of twice."""
    if total <= KEPT_ROWS:
        return costs.kept_pair
    return costs.whole_pair if total <= KERNEL_ROWS else costs.tiled_pair / 2


def measure(quick: bool) -> list[Table]:
    seen = {ranks: ranks_here(ranks, 3 if quick else 9) for ranks in (1, 2, 4)}
    bound = bound_costs()
    here = network_costs("paper_mnist", "bernoulli", (1, 28, 28), Plan.latent, (128, 512), bound)
    loopback, per_byte = fitted(seen[2])
    checked = check(replace(here, per_byte=per_byte), loopback, seen)
    celeba = network_costs("paper_celeba", "gaussian", (3, 64, 64), Plan.latent, (8, 16), bound)
    ethernet, cluster = Network(30e-6, 25e9 / 8), Network(10e-6, 200e9 / 8)
    measured = (
        f"one core of this machine as a rank ({1e3 * celeba.per_row:.0f} ms per image, {1e9 * bound.pair:.0f} ns per "
        f"pair of posteriors in C, {1e9 * bound.tiled_pair:.0f} in torch's tiles, processor time) and a stated network "
        "of 25 Gb/s and 30 µs per message"
    )
    assumed = (
        f"an accelerator {SPEED:.0f} times as fast as that core as a rank, for network and bound alike, and a network "
        "of 200 Gb/s and 10 µs: both assumed, neither measured"
    )
    return [
        checked,
        table("simulate_cores", measured, Plan(), celeba, ethernet),
        table("simulate_accelerators", assumed, Plan(), celeba.faster(SPEED), cluster),
    ]


SPEED = 200.0


def fitted(two: Rank) -> tuple[Network, float]:
    """Latency, bandwidth and processor time per byte from all-reduces of 4 bytes and of 4 MB between two ranks."""
    size = 4 << 20
    waited = two.large_all_reduce - two.small_all_reduce - two.slowdown * two.large_cpu
    return Network(two.small_all_reduce / 2, size / max(waited, 1e-6)), two.large_cpu / size


def check(costs: Costs, network: Network, seen: dict[int, Rank]) -> Table:
    """Predicted and measured milliseconds per step of ranks on this machine."""
    rows: list[tuple[str | float, ...]] = []
    for ranks, found in seen.items():
        plan = Plan(per_rank=found.batch // ranks)
        model = step(plan, costs, network, ranks, found.slowdown)
        computing = (model.network + model.bound) / found.slowdown + costs.per_byte * model.sent
        wall = (1e3 * model.seconds, 1e3 * found.step, model.seconds / found.step)
        rows.append((ranks, found.slowdown, *wall, 1e3 * computing, 1e3 * found.cpu, computing / found.cpu))
    caption = (
        f"Check of the simulator: WiSE-ALE on the paper's MNIST network, batch {seen[1].batch}, d_z = {Plan.latent}, "
        "one thread per rank, milliseconds per step, medians of epochs. Slowdown: how many times longer busy processes "
        "took than their processor time, as many at once as ranks, beside whatever else ran on the two cores; "
        "predictions by the clock are multiplied by it, and four ranks on two cores have at least 2. Exchanges are "
        f"those of a ring with {1e6 * network.latency:.0f} µs and {network.bandwidth / 1e9:.2f} GB/s beside "
        f"{1e9 * costs.per_byte:.2f} ns of processor time per byte, fitted to all-reduces of two ranks of gloo. Left "
        "out: what DistributedDataParallel and Python cost a rank, and that small batches are slower per row."
    )
    columns = ("ranks", "slowdown", "predicted", "measured", "ratio", "CPU, predicted", "CPU, measured", "CPU ratio")
    return Table("simulate_check", caption, columns, tuple(rows))


def table(name: str, what: str, plan: Plan, costs: Costs, network: Network) -> Table:
    """The plan on 1 to 1,024 ranks."""
    rows: list[tuple[str | float, ...]] = []
    for ranks in RANKS:
        found = step(plan, costs, network, ranks)
        steps = plan.rows / (plan.per_rank * ranks)
        seconds = (found.network, found.whole_bound, found.bound, found.exchange, found.seconds)
        rows.append(
            (
                ranks,
                f"{plan.per_rank * ranks:,}",
                found.sent / 1e6,
                *seconds,
                steps * found.seconds / DAY,
                steps * (found.seconds - found.bound + found.whole_bound) / DAY,
                found.memory / 1e9,
            )
        )
    caption = (
        f"Simulated, not run: an epoch of 10⁹ images of 64 × 64 × 3 with the paper's CelebA network "
        f"({costs.parameters / 1e6:.0f} million parameters), d_z = {plan.latent}, {plan.per_rank} images per rank, on "
        f"{what}. MB sent by a rank per step (it also reads {plan.per_rank * plan.row_bytes / 1e6:.1f} MB of images), "
        "seconds per step of the network, the bound computed whole by every rank, the bound with shared rows, and the "
        f"exchanges; days per epoch with shared rows and without; GB per rank. {breaking_points(plan, costs, network)}"
    )
    columns = ("ranks", "M", "MB sent", "network", "bound, whole", "bound, shared", "exchange", "step")
    return Table(name, caption, (*columns, "days per epoch", "days, bound whole", "GB"), tuple(rows))


def breaking_points(plan: Plan, costs: Costs, network: Network) -> str:
    """From how many ranks on, in powers of two, each part of a step outweighs the network's computing."""

    def first(outweighs: str) -> str:
        for ranks in _powers_of_two():
            found = step(plan, costs, network, ranks)
            if getattr(found, outweighs) > found.network:
                return f"{ranks:,} ranks"
        return "no number of ranks up to a million"

    return (
        f"More than the network's own computing takes: the whole bound from {first('whole_bound')} on, the shared "
        f"bound from {first('bound')}, the exchanges from {first('exchange')}."
    )


def _powers_of_two() -> Iterator[int]:
    return (1 << power for power in range(21))
