"""Fills in the settings that the user left open (threads and device too), and refuses what cannot work beforehand."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from statistics import median

import torch
from torch.utils.flop_counter import FlopCounterMode

from wiseale import config
from wiseale.config import SettingError, TrainConfig
from wiseale.data import Dataset, is_path
from wiseale.data.defaults import choose_length
from wiseale.divergences import kl_posterior_prior
from wiseale.likelihoods import LikelihoodSettings
from wiseale.networks.model import Model, NetworkSettings, seeded
from wiseale.objectives import make_objective
from wiseale.platform.folders import default_data_root
from wiseale.platform.machine import cores
from wiseale.spaces import Space
from wiseale.training.batches import MOST_HELD_OUT, held_out_count
from wiseale.training.settings import Logger, RunSettings, Schedule

MAX_DEFAULT_THREADS = 4  # small networks gain nothing beyond a few threads

SMALL_STEP = 50_000_000
"""Multiply-adds of a batch's forward pass below which a second thread gains little; threads that wait for each other
by spinning make such steps many times slower on a busy machine."""

_ROUNDS, _STEPS = 5, 3  # of --threads auto


def resolve(asked: TrainConfig, dataset: Dataset) -> RunSettings:
    """The settings with every ``None`` and ``auto`` replaced by a value chosen for this dataset and machine."""
    logger = make_logger(asked.logger)
    preset = replace(dataset.preset, **(dataset.ours if asked.recipe == "ours" else {}))  # type: ignore[arg-type]
    objective = make_objective(asked.objective)
    network: NetworkSettings = config.build("network", asked.network or preset.network)
    likelihood: LikelihoodSettings = config.build("likelihood", asked.likelihood or preset.likelihood)
    schedule: Schedule = config.build("lr schedule", asked.lr_schedule or preset.lr_schedule)
    held_out = preset.held_out if asked.held_out is None else asked.held_out
    most = asked.held_out_most or MOST_HELD_OUT
    n_held_out = held_out_count(len(dataset.train), held_out, most)
    n_train = len(dataset.train) - n_held_out
    if asked.batch_size is not None and asked.batch_size > n_train:
        raise SettingError("batch_size", f"must be at most the {n_train} training rows, got {asked.batch_size}")
    if isinstance(asked.patience, int) and n_held_out == 0:
        raise SettingError("patience", "needs held-out rows to watch: give held_out above 0")
    latent_dim = asked.latent_dim or preset.latent_dim
    batch_size = asked.batch_size or min(preset.batch_size, n_train)
    length = choose_length(
        asked.max_epochs or preset.max_epochs, asked.patience, n_train // batch_size, watched=n_held_out > 0
    )
    prior_warmup = preset.prior_warmup if asked.prior_warmup is None else asked.prior_warmup
    if length.patience is not None and prior_warmup > length.max_epochs:
        raise SettingError(
            "prior_warmup",
            f"must end within the {length.max_epochs} epochs for early stopping to choose one, got {prior_warmup:g}",
        )
    device = choose_device(asked.device)
    if asked.precision == "bf16" and device == "cpu":
        refuse_bf16_that_stops_torch()
    step = network, likelihood, dataset.space, latent_dim, batch_size
    threads = asked.threads or default_threads()
    if asked.threads is None and device == "cpu" and is_small_step(*step):
        threads = 1
    return RunSettings(
        data=os.path.abspath(asked.data) if is_path(asked.data) else asked.data,
        objective=objective,
        latent_dim=latent_dim,
        network=network,
        likelihood=likelihood,
        batch_size=batch_size,
        max_epochs=length.max_epochs,
        lr=asked.lr or preset.lr,
        lr_schedule=schedule,
        prior_warmup=prior_warmup,
        recipe=asked.recipe,
        max_grad_norm=asked.max_grad_norm,
        patience=length.patience,
        held_out=held_out,
        held_out_most=most,
        watch_every=asked.watch_every or length.watch_every,
        init_from=os.path.abspath(asked.init_from) if asked.init_from else None,
        seed=asked.seed,
        processes=asked.processes or 1,
        threads=fastest_threads(*step, device) if threads == "auto" else threads,
        device=device,
        precision=asked.precision,
        data_root=os.path.abspath(os.path.expanduser(asked.data_root or default_data_root())),
        checkpoint_every=asked.checkpoint_every,
        logger=logger,
        figures=asked.figures,
    )


def make_logger(spec: str | None) -> Logger | None:
    """The logger that a spec names, if any; an error where the package it needs is missing."""
    if spec is None:
        return None
    logger: Logger = config.build("logger", spec)
    if logger.package and importlib.util.find_spec(logger.package) is None:
        needs = f"needs a package that is missing: pip install 'wiseale[{logger.extra}]'"
        raise SettingError("logger", f"{config.parse_spec(spec)[0]} {needs}")
    return logger


def default_threads(local_size: int = 1) -> int:
    """Threads of each process when ``local_size`` processes share this machine's cores; a fixed rule, not measured."""
    return max(1, min(cores() // local_size, MAX_DEFAULT_THREADS))


def choose_device(asked: str) -> str:
    """``auto`` is the first accelerator torch finds, else the CPU."""
    if asked != "auto":
        try:
            torch.empty(0, device=asked)
        except (RuntimeError, AssertionError) as error:
            raise SettingError("device", f"{asked!r} cannot be used here: {str(error).splitlines()[0]}") from None
        return asked
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return accelerator.type if accelerator is not None else "cpu"


def refuse_bf16_that_stops_torch() -> None:
    """An error where bfloat16 on the CPU ends the process, tried in another one.

    Some virtual machines announce matrix instructions (AMX) that they do not run.
    """
    product = "import torch; a = torch.ones(256, 256, dtype=torch.bfloat16); a @ a"
    tried = subprocess.run([sys.executable, "-c", product], capture_output=True, check=False)
    if tried.returncode:
        why = "torch's bfloat16 products end the process, as where a processor lacks instructions that it announces"
        raise SettingError("precision", f"bf16 does not work here ({why}): use fp32")


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

    every = cores()
    counts = sorted({every, *(1 << power for power in range(every.bit_length()))})
    seconds: dict[int, list[float]] = {count: [] for count in counts}
    with torch_threads(1):
        for _ in range(_ROUNDS + 1):
            for count in counts:
                torch.set_num_threads(count)
                seconds[count].append(steps())
    return min(counts, key=lambda count: median(seconds[count][1:]))  # the first round is a warm-up
