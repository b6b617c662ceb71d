"""The main job on the built-in default: sine waves, the paper's four systems and the controls, side by side."""

from __future__ import annotations

from pathlib import Path

from wiseale.config import TrainConfig
from wiseale.experiments.comparison import Comparison
from wiseale.experiments.systems import AEVB, BETA_CONTROL, BETA_VAE, WAE_MMD, WISE_ALE, WISE_ALE_AS_WRITTEN


def demo_comparison(out: Path, waves: int, epochs: int, seed: int) -> Comparison:
    """What `wiseale demo` runs."""
    base = TrainConfig(data=f"sine:n={waves}", max_epochs=epochs, seed=seed, threads=1)
    systems = (WISE_ALE, WISE_ALE_AS_WRITTEN, AEVB, BETA_VAE, BETA_CONTROL, WAE_MMD)
    return Comparison(base, systems, seeds=1, out=out, evaluate_rows=2000)
