"""AAE, the adversarial auto-encoder (Makhzani et al. 2016): reconstruction and fooling the critic take turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from wiseale.config import setting
from wiseale.likelihoods import Likelihood
from wiseale.objectives.critic import Adversary, Critic
from wiseale.objectives.terms import ObjectiveCall, Terms, WeightedObjective
from wiseale.posterior import Posterior


@dataclass(frozen=True)
class Aae(WeightedObjective):
    """Per batch: (1) encoder and decoder on mean_i(−log p(x_i|z_i)), (2) the critic, (3) the encoder on −mean log D(z).

    (1) is the paper's reconstruction phase, (2) and (3) its regularisation phase (section 2 there). The loss is that
    of (1), so the prior's weight is 0: ``prior`` is −mean log D(z) before the steps, reported and never added; what (2)
    and (3) minimise is logged as critic_loss and encoder_loss. How strongly the prior binds is set by encoder_lr. A
    critic of two layers of 1000 is the paper's; its SGD with momentum is Adam here, so the learning rates are ours.
    """

    encoder: Literal["gaussian", "deterministic"] = setting(
        "gaussian", "z ~ N(mu, sigma²), or z = mu: both the paper's"
    )
    critic_layers: int = setting(2, "hidden layers of the critic", minimum=1)
    critic_width: int = setting(1000, "units in each of them", minimum=1)
    critic_lr: float = setting(5e-4, "learning rate of the critic's Adam", above=0)
    encoder_lr: float = setting(5e-4, "learning rate of the Adam for the encoder's own step", above=0)

    @property
    def stochastic(self) -> bool:
        """Whether the encoder has a width."""
        return self.encoder == "gaussian"

    def build(self, x_shape: tuple[int, ...], latent_dim: int) -> ObjectiveCall:
        """The objective with a fresh critic."""
        return _Aae(Critic(latent_dim, self.critic_layers, self.critic_width), self.critic_lr, self.encoder_lr)

    def effective_weight(self, batch_size: int, n_samples: int) -> float:
        """0: the prior acts in steps of its own."""
        return 0.0


class _Aae(Adversary):
    def forward(
        self,
        x: Tensor,
        posterior: Posterior,
        z: Tensor,
        likelihood: Likelihood,
        *,
        generator: torch.Generator | None = None,
    ) -> Terms:
        """The terms for a batch: reconstruction alone is in the graph."""
        return Terms(-likelihood.log_prob(x), self.encoder_loss(z.detach()), 0.0)
