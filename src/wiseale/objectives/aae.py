"""AAE, the adversarial auto-encoder (Makhzani et al. 2016): reconstruction and adversarial steps alternate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from wiseale.config import setting
from wiseale.objectives.critic import Adversary, Critic
from wiseale.objectives.terms import Batch, ObjectiveCall, Terms, WeightedObjective
from wiseale.spaces import Space


@dataclass(frozen=True)
class Aae(WeightedObjective):
    """Three steps per batch.

    1. Encoder and decoder minimise mean_i(−log p(x_i|z_i)): the paper's reconstruction phase (its section 2).
    2. The critic D learns to distinguish codes from draws of the prior.
    3. The encoder minimises −mean_i log D(z_i); 2 and 3 are the paper's regularisation phase.

    The loss is that of step 1, so the prior has weight 0: ``prior`` is −mean_i log D(z_i) before the steps, logged but
    not added. The losses of steps 2 and 3 are logged as critic_loss and encoder_loss. encoder_lr sets the strength of
    the prior. The critic's two layers of 1000 units are the paper's; it uses SGD with momentum where we use Adam, so
    the learning rates are ours, and so is the optional gradient penalty of the critic, γ/2·‖∇ logit‖².
    """

    encoder: Literal["gaussian", "deterministic"] = setting(
        "gaussian", "z ~ N(mu, sigma²), or z = mu: both the paper's"
    )
    critic_layers: int = setting(2, "hidden layers of the critic", minimum=1)
    critic_width: int = setting(1000, "units in each of them", minimum=1)
    critic_lr: float = setting(5e-4, "learning rate of the critic's Adam", above=0)
    encoder_lr: float = setting(5e-4, "learning rate of the Adam for the encoder's own step", above=0)
    gradient_penalty: float = setting(0.0, "γ, weight of the critic's squared slope (0: the paper's)", minimum=0)

    title: ClassVar[str] = "AAE"

    def build(self, space: Space, latent_dim: int) -> ObjectiveCall:
        """The objective with a fresh critic."""
        critic = Critic(latent_dim, self.critic_layers, self.critic_width)
        return _Aae(critic, self.critic_lr, self.encoder_lr, gradient_penalty=self.gradient_penalty)

    def effective_weight(self, batch_size: int, n_samples: int) -> float:
        """0: the prior acts through steps 2 and 3, not through the loss."""
        return 0.0


class _Aae(Adversary):
    def forward(self, batch: Batch) -> Terms:
        """The terms for a batch; only the reconstruction has a gradient."""
        return Terms(-batch.likelihood.log_prob(batch.x), self.encoder_loss(batch.z.detach()), 0.0)
