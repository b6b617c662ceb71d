"""The adversarial systems: a critic distinguishes codes from draws of the prior, and the encoder learns to fool it.

AAE is the adversarial auto-encoder (Makhzani et al. 2016); WAE-GAN is Algorithm 1 of Tolstikhin et al. 2018.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from wiseale.config import setting
from wiseale.networks.mlp import dense
from wiseale.objectives.terms import Batch, Objective, ObjectiveCall, Terms
from wiseale.priors import StandardNormal
from wiseale.spaces import Space


class Critic(nn.Module):
    """D: codes (M, d_z) → logits (M,) of "drawn from the prior"; hidden layers of equal width with ReLU.

    With ``add_norm``, −‖z‖²/2 (log p(z) up to a constant) is added to the logit, so that the layers need to learn only
    the density of the codes (Tolstikhin et al. 2018 do so for CelebA).

    >>> Critic(latent_dim=2, layers=1, width=8)(torch.zeros(5, 2)).shape
    torch.Size([5])
    """

    def __init__(self, latent_dim: int, layers: int, width: int, add_norm: bool = False) -> None:
        super().__init__()
        self.layers = nn.Sequential(*dense((latent_dim, *[width] * layers)), nn.Linear(width, 1))
        self.add_norm = add_norm

    def forward(self, z: Tensor) -> Tensor:
        """The logits of a batch of codes, (M,)."""
        logit: Tensor = self.layers(z).squeeze(-1)
        return logit - 0.5 * z.square().sum(-1) if self.add_norm else logit

    def with_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The logits (M,) and their gradients in z, (M, d_z); both can be differentiated by the weights.

        With ReLUs the gradient is a product of weight matrices and masks, so it costs no more than the logits.
        """
        *inner, last = (layer for layer in self.layers if isinstance(layer, nn.Linear))
        hidden, masks = z, []
        for layer in inner:
            hidden = layer(hidden).relu()
            masks.append(hidden > 0)
        gradient: Tensor = last.weight
        for layer, mask in zip(reversed(inner), reversed(masks), strict=True):
            gradient = (gradient * mask) @ layer.weight
        logit: Tensor = last(hidden).squeeze(-1)
        return (logit - 0.5 * z.square().sum(-1), gradient - z) if self.add_norm else (logit, gradient)


class Adversary(nn.Module):
    """A critic with its learning rate and losses; subclasses add ``forward``, which returns the terms of a batch.

    Losses are mean binary cross-entropies in nats, written BCE(D(z), label); draws of the prior have label 1.

    Without its gradient penalty γ the critic need not converge: where the codes are a narrow cloud, as they are at
    first, its logit is nearly linear on them, so that the encoder moves them all the same way, the critic follows, and
    the cloud moves on (Mescheder et al. 2018 show it for a single point). The penalty bounds the critic's slope.
    """

    couples_batch: ClassVar[bool] = False
    needs_whole_batch: ClassVar[bool] = False

    def __init__(
        self, critic: Critic, critic_lr: float, encoder_lr: float | None, critic_weight: float, gradient_penalty: float
    ) -> None:
        super().__init__()
        self.critic = critic
        self.critic_lr, self.encoder_lr = critic_lr, encoder_lr
        self.critic_weight, self.gradient_penalty = critic_weight, gradient_penalty

    def critic_parameters(self) -> Iterable[nn.Parameter]:
        """The critic's weights."""
        return self.critic.parameters()

    def critic_loss(self, z: Tensor, generator: torch.Generator) -> Tensor:
        """critic_weight · [BCE(D(z_p), 1) + BCE(D(z), 0) + penalty] with M codes z and M draws z_p from the prior, ().

        The penalty is γ/2 · [mean ‖∇ logit(z_p)‖² + mean ‖∇ logit(z)‖²].
        """
        z_prior = StandardNormal(z.shape[1]).sample(len(z), generator).to(z)
        if self.gradient_penalty == 0:
            logit_prior, logit = self.critic(z_prior), self.critic(z.detach())
            return self.critic_weight * (F.softplus(-logit_prior).mean() + F.softplus(logit).mean())
        logit_prior, slope_prior = self.critic.with_gradient(z_prior)
        logit, slope = self.critic.with_gradient(z.detach())
        cross_entropy = F.softplus(-logit_prior).mean() + F.softplus(logit).mean()
        steepness = slope_prior.square().sum(1).mean() + slope.square().sum(1).mean()
        return self.critic_weight * (cross_entropy + 0.5 * self.gradient_penalty * steepness)

    def encoder_loss(self, z: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """BCE(D(z), 1) = −mean log D(z), (), the non-saturating loss; the critic's weights get no gradient."""
        frozen = {name: weight.detach() for name, weight in self.critic.named_parameters()}
        logit: Tensor = functional_call(self.critic, frozen, (z,))
        return F.softplus(-logit).mean()


@dataclass(frozen=True)
class Aae(Objective):
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
        return _Aae(critic, self.critic_lr, self.encoder_lr, 1.0, self.gradient_penalty)

    def effective_weight(self, batch_size: int, n_samples: int) -> float:
        """0: the prior acts through steps 2 and 3, not through the loss."""
        return 0.0


class _Aae(Adversary):
    def forward(self, batch: Batch) -> Terms:
        """The terms for a batch; only the reconstruction has a gradient."""
        return Terms(batch.reconstruction, self.encoder_loss(batch.z.detach()), 0.0)


@dataclass(frozen=True)
class WaeGan(Objective):
    """mean_i(−log p(x_i|z_i)) + λ · BCE(D(z), 1); after each step D minimises λ·[BCE(D(z_p), 1) + BCE(D(z), 0)].

    BCE is the mean binary cross-entropy; z_p are draws from the prior. Defaults are the paper's for MNIST; for CelebA
    it has λ = 1 in its units (2.5 here), a width of 1024, ``add_norm`` and a critic_lr of 1e-3. λ is converted as for
    :class:`~wiseale.objectives.distances.WaeMmd`. The gradient penalty of the critic, γ/2·‖∇ logit‖², is ours: without
    it (γ = 0) the paper's network for MNIST gives every digit the same code, see ``docs/collapse.md``.
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
        return Terms(batch.reconstruction, self.encoder_loss(batch.z), self.critic_weight)
