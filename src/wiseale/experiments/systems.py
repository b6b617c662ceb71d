"""The compared systems, with the names used in tables and reports, and the demo: some of them on sine waves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from wiseale.config import TrainConfig
from wiseale.data import load_dataset
from wiseale.experiments.comparison import Comparison, Summary, System
from wiseale.models.collapse import CodeUse

WISE_ALE = System("WiSE-ALE, weight 1", "wise_ale")
WISE_ALE_AS_WRITTEN = System("WiSE-ALE as written (1/M)", "wise_ale:prior_weight=paper")
AEVB = System("AEVB", "aevb")
_WARM_UP = {"prior_warmup": 5.0}
AEVB_WARM_UP = System("AEVB, KL warm-up", "aevb", _WARM_UP)
BETA_VAE = System("β-VAE, β = 4", "beta_vae:beta=4")
BETA_CONTROL = System("β-VAE, β = 1/M", "beta_vae:beta=1/M")
WAE_MMD = System("WAE-MMD", "wae_mmd")
WAE_MMD_FACES = replace(WAE_MMD, objective="wae_mmd:prior_weight=250")  # the WAE authors' weight for CelebA, converted
WAE_MMD_GAUSSIAN = System("WAE-MMD, Gaussian encoder", "wae_mmd:encoder=gaussian")
WAE_GAN = System("WAE-GAN", "wae_gan")
AAE = System("AAE", "aae")
SINKHORN_AE = System("Sinkhorn AE", "sinkhorn_ae")
GMVAE = System("GMVAE", "gmvae")
WISE_ALE_EXACT = System("WiSE-ALE, exact reconstruction", "wise_ale_exact")

ESTIMATORS = (
    System("WiSE-ALE, Bhattacharyya bound", "wise_ale:estimator=bhattacharyya"),
    System("WiSE-ALE, Monte Carlo", "wise_ale:estimator=mc"),
)

SWEEP = ("1/64", "1/16", "1/4", "1", "2", "4", "8", "16")
"""Weights of the sweep; 1/64 is 1/M, because every swept experiment has batches of 64."""


def sweep_of_wise_ale(weight: str) -> System:
    """WiSE-ALE at one weight of the sweep."""
    named = {"1": WISE_ALE, "1/64": WISE_ALE_AS_WRITTEN}
    return named.get(weight) or System(f"WiSE-ALE, weight {weight}", f"wise_ale:prior_weight={weight}")


def sweep_of_beta_vae(beta: str) -> System:
    """β-VAE at one β of the sweep; β = 1 is AEVB."""
    named = {"1": AEVB, "4": BETA_VAE, "1/64": BETA_CONTROL}
    return named.get(beta) or System(f"β-VAE, β = {beta}", f"beta_vae:beta={beta}")


def beta_vae_with_warm_up(beta: str) -> System:
    """β-VAE whose weight rises to β over five epochs: does it collapse for its objective, or for its start?"""
    if beta == "1":
        return AEVB_WARM_UP
    return System(f"β-VAE, β = {beta}, KL warm-up", f"beta_vae:beta={beta}", _WARM_UP)


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
    error, units = ours["mse"].mean, round(ours["active_units"].mean)
    sentences = [
        f"{WISE_ALE.name}, reconstructs unseen waves with a mean squared error of {error:.3f}, where the waves' own "
        f"variance is {variance:.2f}: {1 - error / variance:.0%} of it is explained by {units} numbers."
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
