"""The number of CPU threads of a run: one for small networks, and ``--threads auto``, which measures the fastest."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from statistics import median

import torch
from torch.utils.flop_counter import FlopCounterMode

from wiseale.divergences import kl_posterior_prior
from wiseale.likelihoods import LikelihoodSettings
from wiseale.networks.model import Model, NetworkSettings, seeded
from wiseale.platform.machine import cores
from wiseale.spaces import Space

SMALL_STEP = 50_000_000
"""Multiply-adds of a batch's forward pass below which a second thread gains little; threads that wait for each other
by spinning make such steps many times slower on a busy machine."""

_ROUNDS, _STEPS = 5, 3


def is_small_step(
    network: NetworkSettings, likelihood: LikelihoodSettings, space: Space, latent_dim: int, batch_size: int
) -> bool:
    """Whether the forward pass of a batch has fewer than :data:`SMALL_STEP` multiply-adds; nothing is computed."""
    return batch_size * _multiply_adds(network, likelihood, space, latent_dim) < SMALL_STEP


@lru_cache  # settings are frozen, and so they have a hash
def _multiply_adds(network: NetworkSettings, likelihood: LikelihoodSettings, space: Space, latent_dim: int) -> int:
    """Of the forward pass of one row."""
    with torch.device("meta"), seeded(0):
        model = Model(network, space, latent_dim, likelihood)
        x, epsilon = torch.empty(2, *space.x_shape), torch.empty(2, latent_dim)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(x, epsilon)
    return int(counter.get_total_flops()) // 4  # a multiply-add counts as two, and there are two rows


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Inside, torch uses this many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def fastest_threads(
    network: NetworkSettings,
    likelihood: LikelihoodSettings,
    space: Space,
    latent_dim: int,
    batch_size: int,
    device: str,
) -> int:
    """The number of threads among 1, 2, 4, … and all cores with the shortest median step; ties go to fewer threads.

    The steps train a copy of the run's network on random rows; the run's weights and random numbers are not touched.
    """
    with seeded(0):
        model = Model(network, space, latent_dim, likelihood).to(device)
        x, epsilon = torch.rand(batch_size, *space.x_shape), torch.randn(batch_size, latent_dim)
    x, epsilon = x.to(device), epsilon.to(device)

    def steps() -> float:
        started = time.perf_counter()
        for _ in range(_STEPS):
            posterior, _, reconstruction = model(x, epsilon)
            loss = kl_posterior_prior(posterior).mean() - reconstruction.log_prob(x).mean()
            torch.autograd.grad(loss, [p for p in model.parameters() if p.requires_grad], allow_unused=True)
        return time.perf_counter() - started

    before, counts = torch.get_num_threads(), _counts(cores())
    seconds: dict[int, list[float]] = {count: [] for count in counts}
    try:
        for turn in range(_ROUNDS + 1):
            for count in counts:
                torch.set_num_threads(count)
                taken = steps()
                if turn:  # the first turn is a warm-up
                    seconds[count].append(taken)
    finally:
        torch.set_num_threads(before)
    return min(counts, key=lambda count: median(seconds[count]))


def _counts(cores: int) -> list[int]:
    counts = [1]
    while counts[-1] * 2 < cores:
        counts.append(counts[-1] * 2)
    return counts if cores == 1 else [*counts, cores]
