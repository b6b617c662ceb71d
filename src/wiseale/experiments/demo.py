"""The main job on the built-in default: sine waves, the paper's four systems and the controls, side by side."""

from __future__ import annotations

from pathlib import Path

from wiseale.config import TrainConfig
from wiseale.data import load_dataset
from wiseale.experiments.comparison import Comparison, Summary
from wiseale.experiments.systems import AEVB, BETA_CONTROL, BETA_VAE, WAE_MMD, WISE_ALE, WISE_ALE_AS_WRITTEN
from wiseale.models.collapse import CodeUse


def demo_comparison(out: Path, waves: int, epochs: int, seed: int) -> Comparison:
    """What `wiseale demo` runs."""
    base = TrainConfig(data=f"sine:n={waves}", max_epochs=epochs, recipe="ours", seed=seed, threads=1)
    systems = (WISE_ALE, WISE_ALE_AS_WRITTEN, AEVB, BETA_VAE, BETA_CONTROL, WAE_MMD)
    return Comparison(base, systems, seeds=1, out=out, evaluate_rows=2000)


def variance_of_waves(comparison: Comparison) -> float:
    """The variance of the unseen waves: the MSE of a system that has learned nothing."""
    rows = load_dataset(comparison.base.data).test
    assert rows is not None
    return float(rows.x.var())


def reading(summary: Summary, variance: float) -> list[str]:
    """How to read the table, in three sentences about this run's own numbers; without a finished WiSE-ALE nothing."""
    ours, beta = summary.get(WISE_ALE.name), summary.get(BETA_VAE.name)
    if ours is None:
        return []
    error = ours["mse"].mean
    sentences = [
        f"{WISE_ALE.name}, reconstructs unseen waves with a mean squared error of {error:.3f}, where the waves' own "
        f"variance is {variance:.2f}: {1 - error / variance:.0%} of it is explained by {_codes(summary)} numbers."
    ]
    if beta is not None:
        nats = max(beta["mutual_information"].mean, 0.0)
        use = CodeUse(round(beta["active_units"].mean), nats)
        verdict = "has collapsed" if use.collapsed else "has not collapsed"
        sentences.append(
            f"{BETA_VAE.name}, {verdict}: its codes hold {nats:.1f} nats about the wave (WiSE-ALE's "
            f"{ours['mutual_information'].mean:.1f}) and its error is {beta['mse'].mean:.3f}."
        )
    written = summary.get(WISE_ALE_AS_WRITTEN.name)
    if written is not None:
        sentences.append(
            f"At the weight the paper writes, 1/M, the average posterior is {written['kl_aggregate_mc'].mean:.1f} nats "
            f"from the prior (weight 1: {ours['kl_aggregate_mc'].mean:.1f}). The farther it is, the more codes "
            "drawn from the prior fall where no wave has one, and decode badly."
        )
    return sentences


def _codes(summary: Summary) -> int:
    """Latent units in use."""
    return round(summary[WISE_ALE.name]["active_units"].mean)
