"""GMVAE (Dilokthanakul et al. 2016): the prior is a learned mixture of Gaussians, conditioned on a second code w.

The paper's symbols → ours: data y → x, code x → z, w → w, cluster z → y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wiseale.config import setting
from wiseale.divergences import kl_posterior_prior
from wiseale.networks.mlp import dense
from wiseale.networks.model import Head
from wiseale.objectives.terms import Batch, Objective, ObjectiveCall, Terms
from wiseale.posterior import LOG_2PI, Posterior
from wiseale.spaces import Space

_SIGMA_MIN = 1e-3  # floor of the components' sigma: a component of width 0 would make the bound infinite


@dataclass(frozen=True)
class Gmvae(Objective):
    """w ~ N(0, I), y ~ Cat(1/K), z|w,y ~ N(mu_y(w), sigma_y²(w)), x|z; inferred by q(z|x), q(w|x), Bayes' rule for y.

    Prior term, with r_k = p(y = k|z, w) at the drawn z and w: Σ_k r_k [log q(z|x) − log p(z|w, k)] + KL(q(w|x) ‖ p(w))
    + Σ_k r_k log(K r_k). Without a floor this is an unbiased estimate of the true ELBO, for r_k depends on z.

    Two differences from the released code (github.com/Nat-D/GMVAE). It weights the analytic KL(q(z|x) ‖ p(z|w, k))
    by r_k at the drawn z, whose expectation is not that of the product. And its floor under the last term (free
    bits, 0.5) acts on the batch mean, by leaving out the gradient; ``minimum_z_prior`` acts on every row.

    The defaults there (main.lua): clusters=15, w_dim=150, hidden=500,500, prior_hidden=500, 200 latent dimensions; its
    run.sh sets 10 clusters for MNIST and 8 for the spiral (commit 1f8bcd4; later commits rely on main.lua's
    defaults). The defaults here are sized for a CPU.
    """

    clusters: int = setting(10, "components K of the prior", minimum=1)
    w_dim: int = setting(10, "size of the second code w", minimum=1)
    hidden: tuple[int, ...] = setting((256, 256), "widths of the layers from x to q(w|x)", minimum=1)
    prior_hidden: tuple[int, ...] = setting((128,), "widths of the layers from w to the components", minimum=1)
    minimum_z_prior: float = setting(
        0.0, "floor under every row's KL of the cluster, the paper's z-prior term (minimum information)", minimum=0
    )

    title: ClassVar[str] = "GMVAE"
    needs_whole_batch: ClassVar[bool] = True  # w is drawn for all rows at once
    own_prior: ClassVar[bool] = True

    def build(self, space: Space, latent_dim: int) -> ObjectiveCall:
        """A module with the networks of q(w|x) and p(z|w, y)."""
        return MixturePrior(self, space, latent_dim)


class MixturePrior(nn.Module):
    """The networks of a GMVAE other than its encoder and decoder; computes its terms and samples its prior."""

    couples_batch: ClassVar[bool] = False
    needs_whole_batch: ClassVar[bool] = True

    def __init__(self, settings: Gmvae, space: Space, latent_dim: int) -> None:
        super().__init__()
        self.settings = settings
        self.latent_dim = latent_dim
        self.features = space.features()
        self.w_body = nn.Sequential(nn.Flatten(), *dense((math.prod(space.seen_shape), *settings.hidden)))
        self.w_head = Head(settings.hidden[-1], settings.w_dim, "softplus", 1e-4)
        outputs = 2 * settings.clusters * latent_dim
        self.to_components = nn.Sequential(
            *dense((settings.w_dim, *settings.prior_hidden), nn.Tanh), nn.Linear(settings.prior_hidden[-1], outputs)
        )

    def forward(self, batch: Batch) -> Terms:
        """The terms for a batch, at the given z and one draw of w, each in ``details``."""
        z, posterior = batch.z, batch.posterior
        q_w = self.encode_w(batch.x)
        w = q_w.sample(_normal((len(batch.x), self.settings.w_dim), batch.generator).to(q_w.mu))
        log_components = self.log_components(z, w)
        log_r = log_components.log_softmax(1)  # p(y = k|z, w) by Bayes' rule, all components being equally likely
        r = log_r.exp()
        conditional_prior = (r * (posterior.log_prob(z)[:, None] - log_components)).sum(1)
        w_prior = kl_posterior_prior(q_w)
        z_prior = (r * (log_r + math.log(self.settings.clusters))).sum(1)
        prior = (conditional_prior + w_prior + z_prior.clamp(min=self.settings.minimum_z_prior)).mean()
        reconstruction = batch.reconstruction
        details = {
            "conditional_prior": conditional_prior.mean(),
            "w_prior": w_prior.mean(),
            "z_prior": z_prior.mean(),
        }
        elbo = -(reconstruction + conditional_prior + w_prior + z_prior).mean()
        return Terms(reconstruction, prior, 1.0, details, elbo)

    def encode_w(self, x: Tensor) -> Posterior:
        """q(w|x) for a batch (M, *x_shape)."""
        posterior: Posterior = self.w_head(self.w_body(self.features.seen(x)[0]))
        return posterior

    def components(self, w: Tensor) -> tuple[Tensor, Tensor]:
        """Means and standard deviations of p(z|w, y = k), each (M, K, d_z)."""
        outputs = self.to_components(w).unflatten(1, (2, self.settings.clusters, self.latent_dim))
        mu, raw = outputs.unbind(1)
        return mu, F.softplus(raw) + _SIGMA_MIN

    def log_components(self, z: Tensor, w: Tensor) -> Tensor:
        """log p(z|w, y = k) in nats, (M, K)."""
        mu, sigma = self.components(w)
        standardised = (z[:, None] - mu) / sigma
        return -(0.5 * standardised.square() + sigma.log() + 0.5 * LOG_2PI).sum(-1)

    @torch.no_grad()
    def sample_prior(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n codes (n, d_z) from the prior: w, then the cluster y, then z."""
        like = next(self.parameters())
        mu, sigma = self.components(_normal((n, self.settings.w_dim), generator).to(like))
        cluster = torch.randint(self.settings.clusters, (n,), generator=generator).to(like.device)
        chosen = (torch.arange(n, device=like.device), cluster)
        return torch.addcmul(mu[chosen], sigma[chosen], _normal((n, self.latent_dim), generator).to(like))


def _normal(shape: tuple[int, int], generator: torch.Generator | None) -> Tensor:
    """Standard normal noise, drawn on the CPU in float32 for any device and dtype."""
    return torch.randn(shape, generator=generator)
