"""Seconds per step of our loop beside a hand-written PyTorch loop with the same network, data, batch and threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch

from bench.table import Table, ratio_of_medians
from wiseale import config
from wiseale.data import load_dataset
from wiseale.data.dataset import Rows
from wiseale.likelihoods import GaussianFamily
from wiseale.networks.model import Model, seeded
from wiseale.objectives import make_objective
from wiseale.training.batches import Batches
from wiseale.training.checkpoint import Learner
from wiseale.training.loop import EpochRecord, fit
from wiseale.training.plan import Plan
from wiseale.training.schedule import Constant

BATCH, LATENT, LR = 64, 4, 5e-4


def measure(quick: bool) -> list[Table]:
    rows = []
    steps, repeats = (20, 5) if quick else (60, 15)
    x = load_dataset(f"sine:n={steps * BATCH},n_test=1").train.x
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for objective in ("aevb", "wise_ale"):
            contenders = {"plain": plain_epoch(x), "ours": our_epoch(x, objective)}
            times: dict[str, list[float]] = {name: [] for name in contenders}
            for repeat in range(repeats + 1):
                for name, epoch in contenders.items():
                    started = time.perf_counter()
                    epoch()
                    if repeat:  # the first is a warm-up
                        times[name].append((time.perf_counter() - started) / steps)
            ratio = ratio_of_medians(times["ours"], times["plain"])
            rows.append((objective, threads, 1e3 * median(times["plain"]), 1e3 * median(times["ours"]), ratio))
    caption = (
        f"Paper's sine network, batch {BATCH}, fused Adam: milliseconds per step, medians of {repeats} interleaved "
        f"epochs of {steps} steps. The plain loop trains AEVB with tensors indexed by a permutation; ours also draws "
        "keyed noise, logs every term and watches for divergence."
    )
    columns = ("objective (ours)", "threads", "plain AEVB loop, ms", "wiseale, ms", "wiseale / plain")
    return [Table("training", caption, columns, tuple(rows))]


def network() -> Model:
    with seeded(0):
        return Model(config.build("network", "paper_sine"), (1, 256), LATENT, GaussianFamily())


def plain_epoch(x: np.ndarray) -> Callable[[], None]:
    """What one writes by hand: the closed-form KL, squared error, and nothing else."""
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=LR, fused=True)
    waves = torch.from_numpy(x)

    def epoch() -> None:
        order = torch.randperm(len(waves))
        for start in range(0, len(waves) - BATCH + 1, BATCH):
            batch = waves[order[start : start + BATCH]]
            features = model.body(batch)
            mu, sigma = model.head.mu(features), torch.relu(model.head.sigma(features)) + 1e-3
            z = mu + sigma * torch.randn_like(mu)
            x_hat = model.decoder(z)
            reconstruction = 0.5 * (batch - x_hat).square().sum((1, 2)).mean()
            kl = 0.5 * (mu.square() + sigma.square() - 1 - 2 * sigma.log()).sum(1).mean()
            loss = reconstruction + kl
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return epoch


def our_epoch(x: np.ndarray, objective: str) -> Callable[[], None]:
    """One epoch of the loop a user gets, without a run directory."""
    learner = Learner.fresh(network(), make_objective(objective).build((1, 256), LATENT), LR)
    batches = Batches(Rows(x))

    def epoch() -> None:
        plan = Plan(BATCH, learner.progress.epoch + 1, LR, Constant())
        fit(learner, batches, None, plan, Quiet())

    return epoch


class Quiet:
    """A journal that keeps nothing."""

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: dict[str, float]) -> None: ...

    def epoch(self, record: EpochRecord) -> None: ...

    def checkpoint(self, learner: Learner) -> None: ...

    def interrupted(self) -> bool:
        return False
