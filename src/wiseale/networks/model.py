"""The auto-encoder: ``encode(x)`` returns a Posterior, ``decode(z)`` a Likelihood, whatever network does the work."""

from __future__ import annotations

import math
import threading
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wiseale.config import Settings, setting
from wiseale.likelihoods import Likelihood, LikelihoodSettings, OutputLayer
from wiseale.networks.layers import Init, initialise, zero_last_layer
from wiseale.posterior import Posterior
from wiseale.priors import OwnPrior, StandardNormal
from wiseale.spaces import Space
from wiseale.spaces.features import Features
from wiseale.spaces.units import Units

SigmaActivation = Literal["softplus", "relu"]


@dataclass(frozen=True)
class NetworkSettings(Settings):
    """Base of every network's settings: how the encoder computes sigma, and what the weights start from."""

    sigma_activation: SigmaActivation = setting("softplus", "makes the posterior's standard deviation positive")
    sigma_min: float = setting(1e-4, "floor of the posterior's standard deviation", above=0)
    init: Init = setting("glorot", "initial weights")

    example_shape: ClassVar[tuple[int, ...]]
    """A shape of x that the network accepts; the contract tests build it for this shape."""

    @property
    def has_linear_path(self) -> bool:
        """Whether a linear auto-encoder is added to the network, see :class:`GenericNetwork`."""
        return False

    @abstractmethod
    def encoder(self, shape: tuple[int, ...]) -> tuple[nn.Module, int]:
        """A fresh encoder's body for observations of this shape, and the number of features it ends in."""

    @abstractmethod
    def decoder(self, latent_dim: int, shape: tuple[int, ...]) -> nn.Module:
        """A fresh decoder from codes (M, d_z) to (M, *shape)."""


@dataclass(frozen=True)
class GenericNetwork(NetworkSettings):
    """Base of the networks for people's own data, which may start where principal components end."""

    start: Literal["pca", "none"] = setting("pca", "pca adds a linear path to the network and starts it at PCA")

    @property
    def has_linear_path(self) -> bool:
        """Whether a linear auto-encoder is added to the network."""
        return self.start == "pca"


class Head(nn.Module):
    """Features (M, F) to a Posterior: mu is linear (plus ``shift``), sigma = activation(linear) + sigma_min.

    Without an activation the encoder is deterministic: there is no sigma.
    """

    def __init__(self, features: int, latent_dim: int, activation: SigmaActivation | None, sigma_min: float) -> None:
        super().__init__()
        self.mu = nn.Linear(features, latent_dim)
        self.sigma = nn.Linear(features, latent_dim) if activation else None
        self.activation = activation
        self.sigma_min = sigma_min

    def initialise(self, init: Init) -> None:
        """Draw the initial weights."""
        initialise(self, init)
        if self.sigma is not None and self.activation == "relu":
            nn.init.ones_(self.sigma.bias)  # below 0 a ReLU has no gradient: start away from there

    @torch.no_grad()
    def start_at(self, sigma: Tensor) -> None:
        """Return mu = 0 (plus the shift) and this sigma, (d_z,), for every x, until trained."""
        zero_last_layer(self.mu)
        if self.sigma is not None:
            zero_last_layer(self.sigma)
            above = (sigma - self.sigma_min).clamp_min(1e-6)
            self.sigma.bias.copy_(above if self.activation == "relu" else above.expm1().log())

    def forward(self, features: Tensor, shift: Tensor | float = 0.0) -> Posterior:
        """The posteriors of a batch."""
        if self.sigma is None:
            return Posterior(self.mu(features) + shift)
        raw = self.sigma(features)
        positive = F.relu(raw) if self.activation == "relu" else F.softplus(raw)
        return Posterior(self.mu(features) + shift, positive + self.sigma_min)


class LinearPath(nn.Module):
    """A linear auto-encoder added to the network and trained with it: mu = A x + a + f(x), x_hat = B z + b + g(z).

    Training starts them at the optimum of a linear model (:mod:`wiseale.training.setup`) and the network's last layers
    at 0, so that it begins with the quality of principal components and every unit in use.
    """

    def __init__(self, features: tuple[int, ...], latent_dim: int, outputs: tuple[int, ...]) -> None:
        super().__init__()
        self.outputs = outputs
        self.encoder = nn.Linear(math.prod(features), latent_dim)
        self.decoder = nn.Linear(latent_dim, math.prod(outputs))

    def encode(self, x: Tensor) -> Tensor:
        """A x + a for a batch (M, *features), (M, d_z)."""
        mu: Tensor = self.encoder(x.flatten(1))
        return mu

    def decode(self, z: Tensor) -> Tensor:
        """B z + b for a batch (M, d_z), (M, *outputs)."""
        return self.decoder(z).unflatten(1, self.outputs)  # type: ignore[no-any-return]


def _full_precision(values: Tensor) -> Tensor:
    """Posteriors and likelihoods are computed in at least float32, also where the layers run in bfloat16."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values


def _without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Compute in the layers' own precision; nothing to do on devices that have no other, such as ``meta``."""
    kind = device.type
    on = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if on else nullcontext()


class Model(nn.Module):
    """Encoder, decoder and likelihood of the rows of a space; x is in the network's units, see :attr:`units`.

    Without ``stochastic`` the encoder returns codes alone: a posterior without sigma. ``linear`` is the linear path
    beside the network, if it has one; ``features`` is what the encoder sees of x; ``prior`` the objective's own prior
    over codes, in trained models, None where it is N(0, I).
    """

    def __init__(
        self,
        network: NetworkSettings,
        space: Space,
        latent_dim: int,
        likelihood: LikelihoodSettings,
        stochastic: bool = True,
    ) -> None:
        super().__init__()
        self.space = space
        self.latent_dim = latent_dim
        self.stochastic = stochastic
        self.sigma_min = network.sigma_min
        self.body, width = network.encoder(space.seen_shape)
        if space.seen_shape != space.output_shape:  # drawn and dropped, so that a seed gives the weights it always gave
            network.decoder(latent_dim, space.seen_shape), network.encoder(space.output_shape)
        decoder = network.decoder(latent_dim, space.output_shape)
        self.head = Head(width, latent_dim, network.sigma_activation if stochastic else None, network.sigma_min)
        self.decoder = decoder  # after the head, whose weights come first in files and optimisers
        path = LinearPath(space.features_shape, latent_dim, space.output_shape) if network.has_linear_path else None
        self.linear = path
        self.likelihood: OutputLayer = likelihood.build(space)
        for part in (self.body, self.decoder):
            initialise(part, network.init)
        self.head.initialise(network.init)
        self.features: Features = space.features()
        self.units: Units = space.units()
        self.prior: nn.Module | None = None

    @property
    def x_shape(self) -> tuple[int, ...]:
        """The shape of a row."""
        return self.space.x_shape

    def encode(self, x: Tensor) -> Posterior:
        """q(z|x) for a batch (M, *x_shape)."""
        seen, features = self.features.seen(x)
        body = self.body(seen)
        with _without_autocast(body.device):  # in bfloat16 mu would keep three digits, less than sigma
            shift = self.linear.encode(_full_precision(features)) if self.linear else 0.0
            posterior: Posterior = self.head(_full_precision(body), shift)
        return posterior

    def decode(self, z: Tensor) -> Likelihood:
        """p(x|z) for a batch of codes (M, d_z)."""
        likelihood: Likelihood = self.likelihood(self.decode_output(z))
        return likelihood

    def decode_output(self, z: Tensor) -> Tensor:
        """The parameters of p(x|z): what the decoder returns for a batch of codes."""
        output = _full_precision(self.decoder(z))
        if self.linear is None:
            return output
        with _without_autocast(z.device):
            return output + self.linear.decode(z)

    def encoder_parameters(self) -> list[nn.Parameter]:
        """The parameters that the posteriors depend on."""
        linear = list(self.linear.encoder.parameters()) if self.linear else []
        return [*self.body.parameters(), *self.head.parameters(), *linear]

    def sample_prior(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n codes from the model's prior, (n, d_z)."""
        if isinstance(self.prior, OwnPrior):
            return self.prior.sample_prior(n, generator)
        return StandardNormal(self.latent_dim).sample(n, generator).to(next(self.parameters()).device)

    def forward(self, x: Tensor, epsilon: Tensor) -> tuple[Posterior, Tensor, Likelihood]:
        """Encode, sample with the given noise, decode: what one training step needs."""
        posterior = self.encode(x)
        z = posterior.sample(epsilon)
        return posterior, z, self.decode(z)


def parameter_count(model: nn.Module) -> int:
    """Number of trainable values."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


_SEEDING = threading.RLock()  # torch has one global generator for all threads


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Modules made inside take their initial weights from the seed; torch's global generators are left as they were.

    Only the CPU's is used: ``torch.manual_seed`` would also reseed those of every GPU. Threads wait for each other.
    """
    with _SEEDING, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
