"""Small models whose every answer is known in closed form, and cases made of them."""

import numpy as np
import torch
from torch import nn

from wiseale.data import Rows
from wiseale.evaluation.case import Case
from wiseale.evaluation.encoded import Encoded
from wiseale.likelihoods import Gaussian
from wiseale.models.inference import Codec
from wiseale.models.model_file import ModelConfig
from wiseale.posterior import Posterior
from wiseale.spaces import plain_space
from wiseale.spaces.units import Units


class LinearGaussian(nn.Module):
    """z ~ N(0, I), x = W z + b + x_sigma·noise with orthogonal columns of W, so that p(z|x) is a diagonal Gaussian.

    The encoder answers p(z|x), its mean shifted by ``shift`` and its width multiplied by ``widen``.
    """

    def __init__(self, x_dim=6, latent_dim=2, x_sigma=0.5, shift=0.0, widen=1.0, seed=0):
        super().__init__()
        generator = np.random.default_rng(seed)
        columns = np.linalg.qr(generator.normal(size=(x_dim, latent_dim)))[0] * generator.uniform(0.5, 2, latent_dim)
        self.w = torch.from_numpy(columns).float()
        self.b = torch.from_numpy(generator.normal(size=x_dim)).float()
        self.x_shape, self.latent_dim, self.x_sigma = (x_dim,), latent_dim, x_sigma
        self.prior = None
        self.shift, self.widen = shift, widen
        self.stochastic, self.sigma_min, self.units = True, 1e-4, Units()
        self.largest_block = 0
        self.device_marker = nn.Parameter(torch.zeros(()))

    def encode(self, x):
        precision = 1 + self.w.square().sum(0) / self.x_sigma**2
        mu = (x - self.b) @ self.w / self.x_sigma**2 / precision
        return Posterior(mu + self.shift, (self.widen * precision.rsqrt()).expand_as(mu))

    def decode(self, z):
        self.largest_block = max(self.largest_block, len(z))
        return Gaussian(z @ self.w.T + self.b, self.x_sigma)

    def draw(self, n, seed=0):
        """Observations of the model, (n, x_dim)."""
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(n, *self.x_shape, generator=generator)
        z = torch.randn(n, self.latent_dim, generator=generator)
        return z @ self.w.T + self.b + self.x_sigma * noise

    def covariance(self):
        """Cov x, so that p(x) = N(b, covariance)."""
        w = self.w.double().numpy()
        return w @ w.T + self.x_sigma**2 * np.eye(len(w))


class Decoder(nn.Module):
    """A model that is nothing but a function from codes to means; posteriors are given to the case."""

    def __init__(self, function, x_shape, latent_dim, x_sigma=1.0):
        super().__init__()
        self.function, self.x_shape, self.latent_dim, self.x_sigma = function, x_shape, latent_dim, x_sigma
        self.stochastic, self.sigma_min, self.units = True, 1e-4, Units()
        self.prior = None
        self.device_marker = nn.Parameter(torch.zeros(()))

    def decode(self, z):
        return Gaussian(self.function(z), self.x_sigma)


def case_of(model, x, posterior=None, factors=None, circular=None, **settings):
    """A case of a model on rows; the posteriors are the model's own unless given."""
    codec = Codec(
        model, ModelConfig("mlp", "gaussian", "aevb", plain_space(tuple(model.x_shape)), model.latent_dim), exact=False
    )
    rows = Rows(np.asarray(x, np.float32), factors=factors or {})
    if posterior is None:
        return Case(Encoded.of(codec, rows, "test", circular), **settings)
    return Case(Encoded(codec, rows, posterior, "test", circular or {}), **settings)


def case_of_posteriors(mu, sigma, **settings):
    """A case of given posteriors (n, d_z) whose decoder is of no interest."""
    q = Posterior(torch.as_tensor(mu, dtype=torch.float32), torch.as_tensor(sigma, dtype=torch.float32))
    model = Decoder(lambda z: z, (q.latent_dim,), q.latent_dim)
    return case_of(model, np.zeros(q.mu.shape), q, **settings)


def ignore(fraction):
    """A tick that nobody looks at."""
