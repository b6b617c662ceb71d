"""The auto-encoder: ``encode(x)`` returns a Posterior, ``decode(z)`` a Likelihood, whatever network does the work."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wiseale.config import Settings, setting
from wiseale.likelihoods import LearnedTable, Likelihood, LikelihoodFamily
from wiseale.networks.initial_weights import Init, initialise
from wiseale.networks.linear_path import LinearPath, zero_last_layer
from wiseale.posterior import Posterior
from wiseale.priors import OwnPrior, StandardNormal

SigmaActivation = Literal["softplus", "relu"]


@dataclass(frozen=True)
class Pair:
    """An encoder's body, the number of features it ends in, and a decoder from codes to (M, *x_shape)."""

    body: nn.Module
    features: int
    decoder: nn.Module


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
    def pair(self, x_shape: tuple[int, ...], latent_dim: int) -> Pair:
        """Freshly initialised modules for observations of this shape."""


@dataclass(frozen=True)
class GenericNetwork(NetworkSettings):
    """Base of the networks for people's own data, which may start where principal components end."""

    start: Literal["pca", "none"] = setting("pca", "pca adds a linear path to the network and starts it at PCA")

    @property
    def has_linear_path(self) -> bool:
        """Whether a linear auto-encoder is added to the network."""
        return self.start == "pca"


class GaussianHead(nn.Module):
    """Features (M, F) to a Posterior: mu is linear (plus ``shift``), sigma = activation(linear) + sigma_min."""

    def __init__(self, features: int, latent_dim: int, activation: SigmaActivation, sigma_min: float) -> None:
        super().__init__()
        self.mu = nn.Linear(features, latent_dim)
        self.sigma = nn.Linear(features, latent_dim)
        self.activation = activation
        self.sigma_min = sigma_min

    def initialise(self, init: Init) -> None:
        """Draw the initial weights."""
        initialise(self, init)
        if self.activation == "relu":
            nn.init.ones_(self.sigma.bias)  # below 0 a ReLU has no gradient: start away from there

    @torch.no_grad()
    def start_at(self, sigma: Tensor) -> None:
        """Return mu = 0 (plus the shift) and this sigma, (d_z,), for every x, until trained."""
        zero_last_layer(self.mu)
        zero_last_layer(self.sigma)
        above = (sigma - self.sigma_min).clamp_min(1e-6)
        self.sigma.bias.copy_(above if self.activation == "relu" else above.expm1().log())

    def forward(self, features: Tensor, shift: Tensor | float = 0.0) -> Posterior:
        """The posteriors of a batch."""
        raw = self.sigma(features)
        positive = F.relu(raw) if self.activation == "relu" else F.softplus(raw)
        return Posterior(self.mu(features) + shift, positive + self.sigma_min)


class PointHead(nn.Module):
    """Features (M, F) to the codes of a deterministic encoder, which have no sigma."""

    def __init__(self, features: int, latent_dim: int) -> None:
        super().__init__()
        self.mu = nn.Linear(features, latent_dim)

    def initialise(self, init: Init) -> None:
        """Draw the initial weights."""
        initialise(self, init)

    def start_at(self, sigma: Tensor) -> None:
        """Return the shift alone, until trained; there is no sigma."""
        zero_last_layer(self.mu)

    def forward(self, features: Tensor, shift: Tensor | float = 0.0) -> Posterior:
        """The codes of a batch."""
        return Posterior(self.mu(features) + shift)


def _full_precision(values: Tensor) -> Tensor:
    """Posteriors and likelihoods are computed in at least float32, also where the layers run in bfloat16."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values


def _without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Compute in the layers' own precision; nothing to do on devices that have no other, such as ``meta``."""
    kind = device.type
    on = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if on else nullcontext()


class Standardizer(nn.Module):
    """x ↔ (x − mean) / scale, kept with the weights so that a model takes and returns the user's units.

    It stays on the CPU and in its own precision (float64 where it was fitted), wherever the rest of the model is moved:
    rows are standardised before they go to the device, and a large offset must not be rounded before it is subtracted.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    def forward(self, x: Tensor) -> Tensor:
        """From the user's units to the network's."""
        return (x - self.mean) / self.scale

    def inverse(self, x: Tensor) -> Tensor:
        """From the network's units to the user's."""
        return x * self.scale + self.mean

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        return self

    def log_jacobian(self, x: Tensor) -> Tensor:
        """log |d forward / dx| of each row, nats, (n,).

        Added to a log density in the network's units it gives the density in the user's. Missing cells (NaN)
        have no density and count nothing.
        """
        log_scale = self.scale.log().double().expand(x.shape[1:])
        return -(log_scale * ~x.isnan().to(log_scale.device)).flatten(1).sum(1)


class IdentityStandardizer(Standardizer):
    """The user's units are the network's; nothing is stored with the weights."""

    def __init__(self) -> None:
        nn.Module.__init__(self)  # no buffers: the state dict of such a model has no "units" entries
        self.mean, self.scale = torch.zeros(()), torch.ones(())

    def forward(self, x: Tensor) -> Tensor:
        """x, unchanged."""
        return x

    def inverse(self, x: Tensor) -> Tensor:
        """x, unchanged."""
        return x

    def log_jacobian(self, x: Tensor) -> Tensor:
        """0 for each row."""
        return torch.zeros(len(x), dtype=torch.float64)


class Model(nn.Module):
    """Encoder, decoder and likelihood; x is in the network's units, see :attr:`units`.

    Without ``stochastic`` the encoder returns codes alone: a posterior without sigma.

    Attributes:
        linear: the linear path beside the network, if it has one.
        family: makes the likelihood from the decoder's output; a module where its noise is learned.
        units: converts the user's units to the network's and back.
        prior: the objective's own prior over codes, in trained models; None where the prior is N(0, I).
    """

    def __init__(
        self,
        network: NetworkSettings,
        x_shape: tuple[int, ...],
        latent_dim: int,
        family: LikelihoodFamily,
        stochastic: bool = True,
    ) -> None:
        super().__init__()
        built = family.build(x_shape)
        table = built if isinstance(built, LearnedTable) else None
        if table is None:
            pair = network.pair(x_shape, latent_dim)
        else:  # the decoder returns one entry per feature
            outputs = (table.layout.size,)
            ends = network.pair(table.seen_shape, latent_dim), network.pair(outputs, latent_dim)
            pair = Pair(ends[0].body, ends[0].features, ends[1].decoder)
        self.x_shape = x_shape
        self.latent_dim = latent_dim
        self.body = pair.body
        self.stochastic = stochastic
        self.sigma_min = network.sigma_min
        self.head: GaussianHead | PointHead = (
            GaussianHead(pair.features, latent_dim, network.sigma_activation, network.sigma_min)
            if stochastic
            else PointHead(pair.features, latent_dim)
        )
        self.decoder = pair.decoder
        path_shape = x_shape if table is None else outputs
        self.linear = LinearPath(path_shape, latent_dim) if network.has_linear_path else None
        self.family: LikelihoodFamily = built
        for part in (self.body, self.decoder):
            initialise(part, network.init)
        self.head.initialise(network.init)
        self.units: Standardizer = IdentityStandardizer()
        self.prior: nn.Module | None = None

    @property
    def table(self) -> LearnedTable | None:
        """The family where x is the cells of a table with kinds of columns, else None."""
        return self.family if isinstance(self.family, LearnedTable) else None

    @property
    def seen_shape(self) -> tuple[int, ...]:
        """The shape of what networks see of a row: x_shape, unless x is the cells of a table with kinds."""
        return self.x_shape if self.table is None else self.table.seen_shape

    @property
    def entry_units(self) -> Standardizer:
        """The units of the decoder's output: of a table with kinds, a mean and a scale for each of its W entries."""
        if self.table is None or isinstance(self.units, IdentityStandardizer):
            return self.units
        column = self.table.features.column.cpu()
        mean, scale = (values.expand(self.x_shape)[column] for values in (self.units.mean, self.units.scale))
        return Standardizer(mean, scale)

    def encode(self, x: Tensor) -> Posterior:
        """q(z|x) for a batch (M, *x_shape)."""
        seen = x if self.table is None else self.table.seen(x)
        body = self.body(seen)
        with _without_autocast(body.device):  # in bfloat16 mu would keep three digits, less than sigma
            features = seen if self.table is None else seen[:, : self.table.layout.size]
            shift = self.linear.encode(_full_precision(features)) if self.linear else 0.0
            posterior: Posterior = self.head(_full_precision(body), shift)
        return posterior

    def decode(self, z: Tensor) -> Likelihood:
        """p(x|z) for a batch of codes (M, d_z)."""
        return self.family(self.decode_output(z))

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
