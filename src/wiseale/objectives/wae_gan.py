"""WAE-GAN (Tolstikhin et al. 2018, Algorithm 1): the encoder learns to fool a critic that knows the prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from wiseale.config import setting
from wiseale.objectives.critic import Adversary, Critic
from wiseale.objectives.terms import Batch, ObjectiveCall, Terms, WeightedObjective
from wiseale.spaces import Space


@dataclass(frozen=True)
class WaeGan(WeightedObjective):
    """mean_i(−log p(x_i|z_i)) + λ · BCE(D(z), 1); after each step D minimises λ·[BCE(D(z_p), 1) + BCE(D(z), 0)].

    BCE is the mean binary cross-entropy; z_p are draws from the prior. Defaults are the paper's for MNIST; for CelebA
    it has λ = 1 in its units (2.5 here), a width of 1024, ``add_norm`` and a critic_lr of 1e-3. λ is converted as for
    :class:`~wiseale.objectives.wae_mmd.WaeMmd`. The gradient penalty of the critic, γ/2·‖∇ logit‖², is ours: without it
    (γ = 0) the paper's network for MNIST gives every digit the same code, see ``docs/collapse.md``.
    """

    prior_weight: float = setting(100.0, "λ, weight of the adversarial loss (the paper's MNIST)", above=0)
    encoder: Literal["deterministic", "gaussian"] = setting(
        "deterministic", "z = mu (the paper's), or z ~ N(mu, sigma²)"
    )
    critic_layers: int = setting(4, "hidden layers of the critic", minimum=1)
    critic_width: int = setting(512, "units in each of them", minimum=1)
    critic_lr: float = setting(5e-4, "learning rate of the critic's Adam", above=0)
    gradient_penalty: float = setting(1.0, "γ, weight of the critic's squared slope (0: the paper's)", minimum=0)
    add_norm: bool = setting(False, "add −‖z‖²/2, the prior's log density, to the critic's logit")

    title: ClassVar[str] = "WAE-GAN"
    weight_setting: ClassVar[str | None] = "prior_weight"

    def build(self, space: Space, latent_dim: int) -> ObjectiveCall:
        """The objective with a fresh critic."""
        critic = Critic(latent_dim, self.critic_layers, self.critic_width, self.add_norm)
        return _WaeGan(critic, self.critic_lr, None, self.prior_weight, self.gradient_penalty)


class _WaeGan(Adversary):
    def forward(self, batch: Batch) -> Terms:
        """The terms for a batch; the critic's weights get no gradient."""
        return Terms(-batch.likelihood.log_prob(batch.x), self.encoder_loss(batch.z), self.critic_weight)
