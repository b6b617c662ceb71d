"""The compared systems, with the names used in tables and reports; claims refer to these constants."""

from __future__ import annotations

from dataclasses import replace

from wiseale.experiments.comparison import System

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
    known = {"1": WISE_ALE, "1/64": WISE_ALE_AS_WRITTEN}
    return known.get(weight) or System(f"WiSE-ALE, weight {weight}", f"wise_ale:prior_weight={weight}")


def sweep_of_beta_vae(beta: str) -> System:
    """β-VAE at one β of the sweep; β = 1 is AEVB."""
    known = {"1": AEVB, "4": BETA_VAE, "1/64": BETA_CONTROL}
    return known.get(beta) or System(f"β-VAE, β = {beta}", f"beta_vae:beta={beta}")


def beta_vae_with_warm_up(beta: str) -> System:
    """β-VAE whose weight rises to β over five epochs: does it collapse for its objective, or for its start?"""
    if beta == "1":
        return AEVB_WARM_UP
    return System(f"β-VAE, β = {beta}, KL warm-up", f"beta_vae:beta={beta}", _WARM_UP)
