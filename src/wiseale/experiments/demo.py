"""The main job on the built-in default: sine waves, the paper's systems and the controls, side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from wiseale.config import TrainConfig
from wiseale.errors import RunError
from wiseale.evaluation.encoded import encode_run
from wiseale.evaluation.evaluate import Evaluation, evaluate
from wiseale.experiments.jobs import Failure, Job, run_jobs
from wiseale.figures.curves import training_curves
from wiseale.figures.reconstructions import signal_reconstructions
from wiseale.figures.style import save_figure
from wiseale.training.run_directory import RunDirectory

SYSTEMS = {
    "WiSE-ALE, weight 1": "wise_ale",
    "WiSE-ALE as written (1/M)": "wise_ale:prior_weight=paper",
    "AEVB": "aevb",
    "β-VAE, β = 4": "beta_vae:beta=4",
    "β-VAE, β = 1/M, control": "beta_vae:beta=1/M",
}


@dataclass(frozen=True)
class DemoResult:
    """What the demo leaves behind."""

    evaluations: dict[str, Evaluation]
    figures: list[Path]
    failures: list[Failure]


def demo_jobs(out: Path, waves: int, epochs: int, seed: int) -> list[Job]:
    """The runs of the demo."""
    jobs = []
    for name, objective in SYSTEMS.items():
        config = TrainConfig(
            data=f"sine:n={waves}", objective=objective, max_epochs=epochs, seed=seed, threads=1, checkpoint_every=200
        )
        folder = objective.replace(":", "-").replace("=", "-").replace("/", "-over-")
        jobs.append(Job(name, config, out / "runs" / folder))
    return jobs


def run_demo(
    out: Path, waves: int, epochs: int, seed: int, show: Callable[[Sequence[Job]], None], said: Callable[[str], None]
) -> DemoResult:
    """Train, evaluate and draw; what is already done in ``out`` is not done again."""
    jobs = demo_jobs(out, waves, epochs, seed)
    workers = len(os.sched_getaffinity(0))
    failures = run_jobs(jobs, workers, show)
    done = [job for job in jobs if RunDirectory(job.out).finished]
    if not done:
        raise RunError(f"no run of the demo finished; the first said: {failures[0].reason}")
    said(f"evaluating {len(done)} runs on test waves")
    evaluations = {job.name: evaluate(job.out, most=4000) for job in done}
    metrics = {job.name: RunDirectory(job.out).read_metrics() for job in done}
    figures = [
        save_figure(training_curves(metrics), out / "figures" / "training_curves"),
        save_figure(_reconstructions(done), out / "figures" / "reconstructions"),
    ]
    return DemoResult(evaluations, figures, failures)


@torch.no_grad()
def _reconstructions(jobs: Sequence[Job]) -> Figure:
    """Six test waves, from the lowest frequency to the highest, through every system's mean code."""
    x_hat = {}
    for job in jobs:
        encoded = encode_run(job.out, most=200)
        frequency = np.asarray(encoded.factors["frequency"], float)
        amplitude = np.asarray(encoded.factors["amplitude"], float)
        order = np.argsort(frequency)
        order = order[amplitude[order] > 0.7]  # waves one can see
        chosen = order[np.linspace(0, len(order) - 1, 6).astype(int)]
        x = encoded.rows.read(torch.from_numpy(chosen))
        x_hat[job.name] = encoded.model.decode(encoded.posterior.mu[chosen]).mean[:, 0].numpy()
    titles = [f"{frequency[i]:.1f} Hz, A = {amplitude[i]:.1f}" for i in chosen]
    return signal_reconstructions(x[:, 0].numpy(), x_hat, titles)
