"""WAE-MMD (Tolstikhin et al. 2018, Algorithm 2): the batch's codes are held to the prior by a kernel distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from wiseale.config import setting
from wiseale.divergences.samples import squared_mmd
from wiseale.likelihoods import Likelihood
from wiseale.objectives.terms import Terms, WeightedObjective
from wiseale.posterior import Posterior
from wiseale.priors import StandardNormal


@dataclass(frozen=True)
class WaeMmd(WeightedObjective):
    """mean_i(−log p(x_i|z_i)) + λ · MMD²(codes, draws from the prior), eq. 4 of the paper with its MMD penalty.

    The prior's term has no unit: it is not in nats. The paper's code has 0.05·Σ(x − x_hat)² for a reconstruction, with
    λ = 10 (MNIST, x in [0, 1]) and 100 (CelebA, x in [−1, 1]). With c = 1/(2·x_sigma²) and r = their range of x over
    ours, the same objective is λ_ours = λ·c/(0.05·r²): 100 for MNIST, 250 for CelebA in [0, 1], at x_sigma = 1. A
    Bernoulli likelihood has no exact conversion; 100 there too.
    """

    prior_weight: float = setting(
        100.0, "λ, weight of the squared MMD (100: the paper's MNIST, 250: its CelebA)", above=0
    )
    encoder: Literal["deterministic", "gaussian"] = setting(
        "deterministic", "z = mu (the paper's), or z ~ N(mu, sigma²)"
    )

    couples_batch: ClassVar[bool] = True
    weight_setting: ClassVar[str | None] = "prior_weight"

    @property
    def stochastic(self) -> bool:
        """Whether the encoder has a width."""
        return self.encoder == "gaussian"

    def __call__(
        self,
        x: Tensor,
        posterior: Posterior,
        z: Tensor,
        likelihood: Likelihood,
        *,
        generator: torch.Generator | None = None,
    ) -> Terms:
        """The terms for a batch; as many draws from the prior as codes."""
        z_prior = StandardNormal(z.shape[1]).sample(len(z), generator).to(z)
        return Terms(-likelihood.log_prob(x), squared_mmd(z, z_prior), self.prior_weight)
