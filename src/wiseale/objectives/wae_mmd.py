"""WAE-MMD (Tolstikhin et al. 2018, Algorithm 2): a maximum mean discrepancy pulls the batch's codes to the prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from wiseale.config import setting
from wiseale.divergences.samples import squared_mmd
from wiseale.objectives.terms import Batch, Terms, WeightedObjective
from wiseale.priors import StandardNormal


class SampleDistance(WeightedObjective):
    """mean_i(−log p(x_i|z_i)) + prior_weight · distance(codes, as many draws from the prior)."""

    prior_weight: float  # declared as a setting by each objective

    couples_batch: ClassVar[bool] = True
    weight_setting: ClassVar[str | None] = "prior_weight"

    def distance(self, z: Tensor, z_prior: Tensor) -> Tensor:
        """Distance of codes (M, d_z) from draws of the prior (M, d_z), ()."""
        raise NotImplementedError

    def __call__(self, batch: Batch) -> Terms:
        """The terms for a batch; the prior is sampled as often as there are codes."""
        z_prior = StandardNormal(batch.z.shape[1]).sample(len(batch.z), batch.generator).to(batch.z)
        return Terms(-batch.likelihood.log_prob(batch.x), self.distance(batch.z, z_prior), self.prior_weight)


@dataclass(frozen=True)
class WaeMmd(SampleDistance):
    """mean_i(−log p(x_i|z_i)) + λ · MMD²(codes, draws from the prior), eq. 4 of the paper with its MMD penalty.

    The squared MMD has no unit: it is not in nats. The paper's code has 0.05·Σ(x − x_hat)² for a reconstruction, with
    λ = 10 (MNIST, x in [0, 1]) and 100 (CelebA, x in [−1, 1]). With c = 1/(2·x_sigma²) and r = their range of x over
    ours, the same objective is λ_ours = λ·c/(0.05·r²): 100 for MNIST, 250 for CelebA in [0, 1], at x_sigma = 1. For a
    Bernoulli likelihood there is no exact conversion; 100 is used too.
    """

    prior_weight: float = setting(
        100.0, "λ, weight of the squared MMD (100: the paper's MNIST, 250: its CelebA)", above=0
    )
    encoder: Literal["deterministic", "gaussian"] = setting(
        "deterministic", "z = mu (the paper's), or z ~ N(mu, sigma²)"
    )

    title: ClassVar[str] = "WAE-MMD"

    def distance(self, z: Tensor, z_prior: Tensor) -> Tensor:
        """Unbiased squared MMD of codes (M, d_z) and draws of the prior (M, d_z), ()."""
        return squared_mmd(z, z_prior)
