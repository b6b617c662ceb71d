"""The critic, which distinguishes codes from draws of the prior, and the losses that adversarial systems share."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from wiseale.priors import StandardNormal


class Critic(nn.Module):
    """D: codes (M, d_z) → logits (M,) of "drawn from the prior"; hidden layers of equal width with ReLU.

    With ``add_norm``, −‖z‖²/2 (log p(z) up to a constant) is added to the logit, so that the layers need to learn only
    the density of the codes (Tolstikhin et al. 2018 do so for CelebA).

    >>> Critic(latent_dim=2, layers=1, width=8)(torch.zeros(5, 2)).shape
    torch.Size([5])
    """

    def __init__(self, latent_dim: int, layers: int, width: int, add_norm: bool = False) -> None:
        super().__init__()
        sizes = [latent_dim, *[width] * layers]
        hidden = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
        self.layers = nn.Sequential(*hidden, nn.Linear(width, 1))
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
        self,
        critic: Critic,
        critic_lr: float,
        encoder_lr: float | None,
        critic_weight: float = 1.0,
        gradient_penalty: float = 0.0,
    ) -> None:
        super().__init__()
        self.critic = critic
        self.critic_lr = critic_lr
        self.encoder_lr = encoder_lr
        self.critic_weight = critic_weight
        self.gradient_penalty = gradient_penalty

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
