"""Fill in the settings that the user left open, and refuse requests that cannot work before anything is computed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass, replace

import torch

from wiseale import config
from wiseale.config import SettingError, TrainConfig
from wiseale.data import Dataset, is_path
from wiseale.data.defaults import choose_length
from wiseale.objectives import make_objective
from wiseale.platform.folders import default_data_root
from wiseale.platform.machine import cores
from wiseale.training.schedule import Schedule
from wiseale.training.split import MOST_HELD_OUT, held_out_count
from wiseale.training.threads import fastest_threads, is_small_step

MAX_DEFAULT_THREADS = 4  # small networks gain nothing beyond a few threads


@dataclass(frozen=True)
class Plan:
    """The numbers the loop runs by.

    ``listed_order``: whether the order of an epoch is a list however many rows there are, as in earlier versions.
    """

    batch_size: int
    max_epochs: int
    lr: float
    schedule: Schedule
    prior_warmup: float = 0.0
    max_grad_norm: float | None = None
    patience: int | None = None
    watch_every: int = 1
    seed: int = 0
    checkpoint_every: int = 500
    bf16: bool = False
    listed_order: bool = False


def resolve(asked: TrainConfig, dataset: Dataset) -> TrainConfig:
    """The same settings with every ``None`` and ``auto`` replaced by a value chosen for this dataset and machine."""
    logger = require_logger(asked.logger)
    preset = replace(dataset.preset, **(dataset.ours if asked.recipe == "ours" else {}))  # type: ignore[arg-type]
    objective = make_objective(asked.objective)
    network = config.build("network", asked.network or preset.network)
    likelihood = config.build("likelihood", asked.likelihood or preset.likelihood)
    schedule = config.build("lr schedule", asked.lr_schedule or preset.lr_schedule)
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
    specs = config.spec_of("network", network), config.spec_of("likelihood", likelihood)
    threads = asked.threads or default_threads()
    if asked.threads is None and device == "cpu" and is_small_step(*specs, dataset.space, latent_dim, batch_size):
        threads = 1
    if threads == "auto":
        threads = fastest_threads(*specs, dataset.space, latent_dim, batch_size, device)
    return replace(
        asked,
        data=os.path.abspath(asked.data) if is_path(asked.data) else asked.data,
        objective=config.spec_of("objective", objective),  # type: ignore[arg-type]
        latent_dim=latent_dim,
        network=specs[0],
        likelihood=specs[1],
        batch_size=batch_size,
        max_epochs=length.max_epochs,
        patience=length.patience,
        held_out=held_out,
        held_out_most=most,
        watch_every=asked.watch_every or length.watch_every,
        lr=asked.lr or preset.lr,
        lr_schedule=config.spec_of("lr schedule", schedule),
        prior_warmup=prior_warmup,
        init_from=os.path.abspath(asked.init_from) if asked.init_from else None,
        processes=asked.processes or 1,
        threads=threads,
        device=device,
        data_root=os.path.abspath(os.path.expanduser(asked.data_root or default_data_root())),
        logger=logger,
    )


def make_plan(resolved: TrainConfig) -> Plan:
    """The loop's numbers from resolved settings."""
    assert resolved.batch_size and resolved.max_epochs and resolved.lr and resolved.lr_schedule  # noqa: PT018
    assert resolved.patience != "auto"
    assert resolved.prior_warmup is not None
    return Plan(
        batch_size=resolved.batch_size,
        max_epochs=resolved.max_epochs,
        lr=resolved.lr,
        schedule=config.build("lr schedule", resolved.lr_schedule),
        prior_warmup=resolved.prior_warmup,
        max_grad_norm=resolved.max_grad_norm,
        patience=resolved.patience,
        watch_every=resolved.watch_every or 1,
        seed=resolved.seed,
        checkpoint_every=resolved.checkpoint_every,
        bf16=resolved.precision == "bf16",
        listed_order=resolved.held_out_most is None,  # a run of an earlier version continues with the order it began
    )


def require_logger(spec: str | None) -> str | None:
    """The complete spec of a logger; an error where there is no such logger, or the package it needs is missing."""
    if spec is None:
        return None
    logger = config.build("logger", spec)
    if logger.package and importlib.util.find_spec(logger.package) is None:
        needs = f"needs a package that is missing: pip install 'wiseale[{logger.extra}]'"
        raise SettingError("logger", f"{config.parse_spec(spec)[0]} {needs}")
    return config.spec_of("logger", logger)


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
