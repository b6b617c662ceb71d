"""The network that tells codes from draws of the prior, and the steps against it that adversarial systems share."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from wiseale.priors import StandardNormal
from wiseale.processes.collectives import draw_rows


class Critic(nn.Module):
    """D: the logit of "drawn from the prior" for codes (M, d_z), (M,); hidden layers of one width with ReLU.

    With ``add_norm``, −‖z‖²/2 is added to the logit: up to a constant log p(z), so that the layers have to learn the
    codes' own density only (Tolstikhin et al. 2018 do so for CelebA).
    """

    def __init__(self, latent_dim: int, layers: int, width: int, add_norm: bool = False) -> None:
        super().__init__()
        sizes = [latent_dim, *[width] * layers]
        hidden = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
        self.layers = nn.Sequential(*hidden, nn.Linear(width, 1))
        self.add_norm = add_norm

    def forward(self, z: Tensor) -> Tensor:
        """The logits of a batch."""
        logit: Tensor = self.layers(z).squeeze(-1)
        return logit - 0.5 * z.square().sum(-1) if self.add_norm else logit


class Adversary(nn.Module):
    """A critic with its learning rate and losses; the systems add what the loop calls on a batch.

    Losses are mean binary cross-entropies in nats, written BCE(D(z), label) with the label 1 for the prior.
    """

    couples_batch: ClassVar[bool] = False

    def __init__(self, critic: Critic, critic_lr: float, encoder_lr: float | None, critic_weight: float = 1.0) -> None:
        super().__init__()
        self.critic = critic
        self.critic_lr = critic_lr
        self.encoder_lr = encoder_lr
        self.critic_weight = critic_weight

    def critic_parameters(self) -> Iterable[nn.Parameter]:
        """The critic's weights."""
        return self.critic.parameters()

    def critic_loss(self, z: Tensor, generator: torch.Generator) -> Tensor:
        """critic_weight · [BCE(D(z_p), 1) + BCE(D(z), 0)] with as many draws z_p from the prior as codes, ()."""
        z_prior = draw_rows(len(z), lambda n: StandardNormal(z.shape[1]).sample(n, generator)).to(z)
        logit_prior, logit = self.critic(z_prior), self.critic(z.detach())
        return self.critic_weight * (F.softplus(-logit_prior).mean() + F.softplus(logit).mean())

    def encoder_loss(self, z: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """BCE(D(z), 1) = −mean log D(z), (): the form that does not saturate. The critic's weights get no gradient."""
        held = {name: weight.detach() for name, weight in self.critic.named_parameters()}
        logit: Tensor = functional_call(self.critic, held, (z,))
        return F.softplus(-logit).mean()
