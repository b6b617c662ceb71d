"""The paper's experiments: which systems and controls, on which data, at which scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wiseale.config import TrainConfig
from wiseale.experiments import systems as s
from wiseale.experiments.comparison import Comparison, System
from wiseale.experiments.paper.scales import Scale

_NARROW_FACES = "paper_celeba:width=0.125"  # the paper's network is far too wide for a CPU
_MAIN = (s.WISE_ALE, s.WISE_ALE_AS_WRITTEN, s.AEVB, s.BETA_VAE, s.BETA_CONTROL, s.WAE_MMD)


@dataclass(frozen=True)
class Scaled:
    """How much of an experiment is run: the data, the settings, the seeds, and whether the weights are swept."""

    data: str
    seeds: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    rows: int = 10_000


@dataclass(frozen=True)
class DataChoice:
    """The data found for an experiment: ``spec`` replaces its own, ``skip`` means there is none; a note for readers."""

    spec: str | None = None
    note: str | None = None
    skip: bool = False


@dataclass(frozen=True)
class Experiment:
    """One of the paper's datasets with the systems trained on it.

    A new one is a constant in this file and a line in ``registry.EXPERIMENTS``.

    Attributes:
        swept: whether the weight of the prior is varied, too.
        figures: the paper's numbers for figures of the gallery, by the gallery's names.
        choose_data: looks under the data root for data that may be missing there.
    """

    title: str
    systems: tuple[System, ...]
    swept: bool
    scales: Mapping[Scale, Scaled]
    figures: Mapping[str, str] = field(default_factory=dict)
    choose_data: Callable[[Path], DataChoice] = lambda data_root: DataChoice()

    def comparisons(self, scale: Scale, out: Path, data: str | None = None, **common: Any) -> list[Comparison]:
        """The main comparison, and the sweep of the weight with fewer seeds where there is one.

        ``common`` are further training settings of all runs.
        """
        scaled = self.scales[scale]
        base = TrainConfig(data=data or scaled.data, threads=1, **common, **scaled.settings)
        systems = self.systems if scale != "smoke" else tuple(_shortened(system) for system in self.systems)
        made = [Comparison(base, systems, scaled.seeds, out, scaled.rows)]
        if self.swept and scale != "smoke":
            rest = tuple(system for system in _sweep_systems() if system not in systems)
            seeds = scaled.seeds if scale == "paper" else 1
            made.append(replace(made[0], systems=rest, seeds=seeds, out=out / "sweep"))
        return made


def _sweep_systems() -> tuple[System, ...]:
    both = [f(weight) for weight in s.SWEEP for f in (s.sweep_of_wise_ale, s.sweep_of_beta_vae)]
    return tuple({system.name: system for system in both}.values())


def _faces(data_root: Path) -> DataChoice:
    """CelebA if it is there, else the portraits."""
    if (data_root / "celeba").exists():
        return DataChoice()
    if (data_root / "portraits").is_dir():
        note = "portraits stand in for CelebA, which is not under the data root"
        return DataChoice(f"celeba:folder={data_root / 'portraits'}", note)
    return DataChoice(note="neither CelebA nor portraits are under the data root: skipped", skip=True)


def _shortened(system: System) -> System:
    """Settings that only make sense in a long run are left out of a rehearsal."""
    return replace(system, settings={k: 0.5 for k in system.settings if k == "prior_warmup"})


SINE = Experiment(
    "Sine waves",
    (*_MAIN, s.AEVB_WARM_UP, s.WAE_GAN, s.AAE, s.WISE_ALE_EXACT),
    swept=True,
    scales={
        "smoke": Scaled("sine:n=1000,n_test=400", 1, {"max_epochs": 1}, rows=300),
        "small": Scaled("sine:n=20000,n_test=4000", 3, {"max_epochs": 10}, rows=2000),
        "paper": Scaled("sine", 3),
    },
    figures={"reconstructions": "5a", "training_curves": "6"},
)

MNIST = Experiment(
    "MNIST",
    (*_MAIN, s.WAE_MMD_GAUSSIAN, s.WAE_GAN, s.AAE, s.SINKHORN_AE, s.GMVAE),
    swept=True,
    scales={
        "smoke": Scaled("mnist:n=1000", 1, {"max_epochs": 1}, rows=300),
        "small": Scaled("mnist:n=20000", 3, {"max_epochs": 6}, rows=2000),
        "paper": Scaled("mnist", 3),
    },
    figures={"posteriors": "1"},
)

CELEBA = Experiment(
    "Faces",
    _MAIN,
    swept=False,
    scales={
        "smoke": Scaled("celeba", 1, {"max_epochs": 1, "network": "paper_celeba:width=0.03", "batch_size": 64}, 80),
        "small": Scaled("celeba", 3, {"max_epochs": 12, "network": _NARROW_FACES, "batch_size": 64}, 500),
        "paper": Scaled("celeba", 3),
    },
    figures={"reconstructions": "5b"},
    choose_data=_faces,
)

TEAPOT = Experiment(
    "Teapots",
    _MAIN,
    swept=False,
    scales={
        "smoke": Scaled("teapot:n=400", 1, {"max_epochs": 1}, rows=40),
        "small": Scaled("teapot:n=5000", 3, {"max_epochs": 6}, rows=500),
        "paper": Scaled("teapot", 3),
    },
)
