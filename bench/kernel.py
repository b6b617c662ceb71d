"""The aggregate KL bound in C and from the formula beside the plain broadcast, its share of a step, peak memory."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor

from bench.plain import Case, Epoch, plain
from bench.table import Table, ratio_of_medians
from bench.training import interleaved, ours, without_kernels
from wiseale import kernels
from wiseale.data import load_dataset
from wiseale.divergences import kl_aggregate_upper_bound
from wiseale.posterior import Posterior

LOG_2PI = math.log(2 * math.pi)
FULL = ((64, 2), (64, 4), (64, 64), (100, 8), (256, 64), (500, 64), (512, 4), (1024, 16), (1024, 64))
QUICK = ((64, 4), (256, 64), (512, 4), (1024, 16))


def measure(quick: bool) -> list[Table]:
    torch.set_num_threads(1)
    repeats = 5 if quick else 9
    return [sizes(QUICK if quick else FULL, repeats), *([] if quick else [share(9), memory()])]


def broadcast(posterior: Posterior) -> Tensor:
    """The jensen bound as one would write it: every pair in one (M, M, d_z) tensor."""
    mu, sigma = posterior.mu, posterior.scale
    variance = sigma[:, None].square() + sigma.square()
    log_overlap = -0.5 * ((mu[:, None] - mu).square() / variance + variance.log() + LOG_2PI).sum(-1)
    negative_entropy = (log_overlap.logsumexp(1) - math.log(len(mu))).mean()
    return negative_entropy + 0.5 * (mu.square() + sigma.square() + LOG_2PI).sum(-1).mean()


def some_posterior(m: int, d: int, dtype: torch.dtype = torch.float32) -> Posterior:
    g = torch.Generator().manual_seed(0)
    mu, sigma = torch.randn(m, d, generator=g), 0.1 + 0.5 * torch.rand(m, d, generator=g)
    return Posterior(mu.to(dtype).requires_grad_(), sigma.to(dtype).requires_grad_())


def sizes(cases: tuple[tuple[int, int], ...], repeats: int) -> Table:
    """Forward and backward; the reference for correctness is the broadcast in float64."""
    rows = []
    for m, d in cases:
        q = some_posterior(m, d)
        calls = max(1, int(3e6 / (m * m * d)))
        contenders = {
            "compiled": repeat(kl_aggregate_upper_bound, q, calls),
            "torch": without_kernels(repeat(kl_aggregate_upper_bound, q, calls)),
            "broadcast": repeat(broadcast, q, calls),
        }
        times = {name: [1e3 * s / calls for s in seconds] for name, seconds in interleaved(contenders, repeats).items()}
        speeds = (ratio_of_medians(times["broadcast"], times[name]) for name in ("compiled", "torch"))
        errors = off(q), without_kernels(lambda q=q: off(q))()
        rows.append((m, d, *(median(times[name]) for name in contenders), *speeds, *errors))
    caption = (
        f"Jensen bound, forward and backward, 1 thread: milliseconds, medians of {repeats} interleaved; errors of the "
        f"gradient relative to the broadcast in float64. Kernels: {kernels.state()}; without them the formula runs in "
        "blocks."
    )
    columns = ("M", "d_z", "compiled", "torch", "broadcast", "compiled, speed", "torch, speed", "error", "torch, error")
    return Table("kernel", caption, columns, tuple(rows))


def repeat(bound: Callable[[Posterior], Tensor], q: Posterior, calls: int) -> Epoch:
    def epoch() -> float:
        started = time.perf_counter()
        for _ in range(calls):
            torch.autograd.grad(bound(q), (q.mu, q.sigma))
        return time.perf_counter() - started

    return epoch


def off(q: Posterior) -> float:
    exact = Posterior(q.mu.detach().double().requires_grad_(), q.scale.detach().double().requires_grad_())
    found = torch.autograd.grad(kl_aggregate_upper_bound(q), (q.mu, q.sigma))
    expected = torch.autograd.grad(broadcast(exact), (exact.mu, exact.sigma))
    return max(float((f - e).norm() / e.norm()) for f, e in zip(found, expected, strict=True))


def share(repeats: int) -> Table:
    """What the bound adds to a step: WiSE-ALE's step less AEVB's, over the plain loop's AEVB step."""
    rows = []
    for m, d in ((64, 4), (256, 64)):
        x = torch.from_numpy(load_dataset(f"sine:n={20 * m},n_test=1").train.x)
        case = Case("sine", "paper_sine", "gaussian", d, x, m)
        times = interleaved({"plain": plain(case), "aevb": ours(case, "aevb"), "wise": ours(case, "wise_ale")}, repeats)
        ms = {name: 1e3 * median(seconds) / 20 for name, seconds in times.items()}
        q = some_posterior(m, d)
        alone = 1e3 * median(repeat(kl_aggregate_upper_bound, q, 20)() / 20 for _ in range(repeats))
        rows.append((m, d, ms["plain"], ms["aevb"], ms["wise"], (ms["wise"] - ms["aevb"]) / ms["plain"], alone))
    caption = f"The paper's sine network, 1 thread: milliseconds per step, medians of {repeats} interleaved epochs."
    columns = ("M", "d_z", "plain AEVB", "our AEVB", "our WiSE-ALE", "added / plain step", "bound alone")
    return Table("kernel_share", caption, columns, tuple(rows))


def memory() -> Table:
    """Forward and backward at M = 8192, d_z = 64 in a process of its own, whose peak is read beside a small one's."""
    code = (
        "import re, sys, time, torch; torch.set_num_threads(1)\n"
        "from bench.kernel import some_posterior, kl_aggregate_upper_bound as bound\n"
        "q = some_posterior(int(sys.argv[1]), 64); started = time.perf_counter()\n"
        "torch.autograd.grad(bound(q), (q.mu, q.sigma))\n"
        "peak = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())\n"
        "print(time.perf_counter() - started, int(peak[1]) / 1024)"
    )
    rows = []
    for m in (64, 8192):
        done = subprocess.run([sys.executable, "-c", code, str(m)], capture_output=True, text=True, check=True)
        seconds, peak = map(float, done.stdout.split())
        rows.append((m, 64, seconds, peak))
    caption = "Jensen bound, forward and backward, once, 1 thread: seconds, and the process's peak memory in MB."
    return Table("kernel_memory", caption, ("M", "d_z", "seconds", "peak, MB"), tuple(rows))
