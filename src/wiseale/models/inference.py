"""A trained model applied to rows: the one way from stored rows to codes and back, for every command and for Python."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wiseale import config
from wiseale.data.dataset import Array
from wiseale.divergences import kl_posterior_prior
from wiseale.errors import RunError
from wiseale.likelihoods import LikelihoodSettings, mean_error
from wiseale.models.model_file import ModelConfig, load_model
from wiseale.networks.model import Model
from wiseale.objectives.terms import Objective
from wiseale.posterior import Posterior
from wiseale.priors import StandardNormal
from wiseale.randomness import generator, standard_normal
from wiseale.spaces import Reading, Space
from wiseale.spaces.units import Units, as_x

Numbers = npt.NDArray[np.floating]

SCORE_DRAWS, IMPUTATION_DRAWS = 16, 64
"""Codes drawn for each row by :meth:`Codec.elbo` and :meth:`Codec.impute`, in pairs of opposite noise."""

_BLOCK_ENTRIES = 1 << 20  # entries of x in a block
_BLOCK_ROWS = 4096
_ROUNDS = 50  # of imputation by an encoder that was trained on complete rows
_DRAWN_ROWS = 1024  # codes drawn with one key, so that the first n samples do not depend on how many follow


@dataclass(frozen=True)
class Codes:
    """Posterior means (n, d_z); standard deviations, None for a deterministic encoder; errors (n,) where asked for.

    An error is the mean over the observed entries of x of (x − x_hat)², from z = mu and in standardised units, so that
    every column counts alike; for the entries of categories and counts see :meth:`wiseale.likelihoods.Mixed.errors`.
    """

    mu: Numbers
    sigma: Numbers | None
    error: Numbers | None = None


class Codec:
    """A trained model that takes rows as they are stored and returns the user's units.

    Tables are computed in float64, so that a row's result does not depend on the rows beside it (unless ``exact`` is
    False: enough for means over many rows); signals and images in float32, where that holds up to rounding, because
    convolutions in float64 are about ten times slower. ``model`` is as it was trained, in float32; ``network`` is in
    the precision of the computation, ``dtype``, which x_hat has too.
    """

    def __init__(self, model: Model, model_config: ModelConfig, *, exact: bool = True) -> None:
        self.model = model.eval()
        self.model_config = model_config
        self._device = next(model.parameters()).device
        exact = exact and len(model.x_shape) == 1 and self._device.type != "mps"  # which has no float64
        self._torch_dtype = torch.float64 if exact else torch.float32
        self.dtype: np.dtype[np.floating] = np.dtype(np.float64) if exact else np.dtype(np.float32)
        self.network = copy.deepcopy(model).to(self._torch_dtype) if exact else model

    def __reduce__(self) -> tuple[type[Codec], tuple[Model, ModelConfig]]:
        return type(self), (self.model, self.model_config)

    @property
    def space(self) -> Space:
        """What one row is."""
        return self.model_config.space

    @property
    def entry_units(self) -> Units:
        """From the user's units to the network's, for the entries of the decoder's output."""
        return self.space.entry_units(self.model.units)

    def blocks(self, n: int) -> Iterator[slice]:
        """Slices of n rows, each small enough to be computed at once."""
        size = max(1, min(_BLOCK_ROWS, _BLOCK_ENTRIES // math.prod(self.model.x_shape)))
        for start in range(0, n, size):
            yield slice(start, min(start + size, n))

    def read(self, stored: Array, reading: Reading | None = None) -> Tensor:
        """Stored rows as x in the network's units, on its device; read as the model's data was, or as given."""
        x: Tensor = self.model.units(as_x(stored, reading or self.space.reading))
        return x.to(self._device, self._torch_dtype)

    @torch.no_grad()
    def posterior(self, x: Tensor) -> Posterior:
        """q(z|x) of rows in the network's units."""
        return self.network.encode(x)

    def in_user_units(self, x: Tensor) -> Tensor:
        """x on the CPU, from the network's units to the user's; a large offset is added in float64."""
        return self.model.units.inverse(x.cpu())

    @torch.inference_mode()
    def encode(self, stored: Array, *, error: bool = False) -> Codes:
        """q(z|x) of rows as they are stored, and the reconstruction error if wanted."""
        x = self.read(stored)
        posterior = self.posterior(x)
        sigma = None if posterior.sigma is None else posterior.sigma.cpu().numpy()
        errors = None
        if error:
            errors = mean_error(self.network.decode(posterior.mu).errors(x)).cpu().numpy()
        return Codes(posterior.mu.cpu().numpy(), sigma, errors)

    @torch.inference_mode()
    def cell_errors(self, stored: Array) -> Numbers:
        """The error of every entry of x, ``(n, *x_shape)``, from z = mu; NaN where a cell is missing."""
        x = self.read(stored)
        return self.network.decode(self.posterior(x).mu).errors(x).cpu().numpy()

    @torch.inference_mode()
    def cell_surprise(self, stored: Array) -> Numbers:
        """How much less likely each entry of x is than the expected one, ``(n, *x_shape)``, nats, from z = mu.

        log p(x_hat|z) − log p(x|z): 0 for the likeliest level, ½ e² for a number that is e noise widths away; NaN where
        a cell is missing.
        """
        x = self.read(stored)
        return self.network.decode(self.posterior(x).mu).surprise(x).cpu().numpy()

    @torch.inference_mode()
    def decode(self, z: Array) -> Numbers:
        """E[x|z] in the user's units, (n, *x_shape), for codes (n, d_z)."""
        return self._write(self.network.decode(self._tensor(z)).mean)

    @torch.inference_mode()
    def expected(self, z: Array) -> Numbers:
        """As :meth:`decode`, but one number per entry of the decoder's output: of a category the p of each level."""
        entries = self.network.decode(self._tensor(z)).expected.cpu()
        result: Numbers = self.entry_units.inverse(entries).numpy().astype(self.dtype, copy=False)
        return result

    @torch.inference_mode()
    def elbo(self, stored: Array) -> Numbers:
        """E_q[log p(x|z)] − D_KL[q(z|x) ‖ N(0, I)] of each row in nats of the user's units, (n,).

        The expectation is a mean over the same few draws of epsilon for every row, so neither the order of the rows nor
        their number matters.
        """
        x = self.read(stored)
        likelihood: LikelihoodSettings = config.build("likelihood", self.model_config.likelihood)
        likelihood.check_support(float(x.min()), float(x.max()))
        posterior = self.posterior(x)
        log_likelihood = torch.zeros(len(x), dtype=x.dtype, device=x.device)
        for z in self._draws(posterior, SCORE_DRAWS):
            log_likelihood += self.network.decode(z).log_prob(x)
        log_jacobian = self.model.units.log_jacobian(x).to(log_likelihood)
        return (log_likelihood / SCORE_DRAWS - kl_posterior_prior(posterior) + log_jacobian).cpu().numpy()

    @torch.inference_mode()
    def sample(self, n: int, seed: int, *, noise: bool = False) -> Iterator[Numbers]:
        """n new observations in the user's units, block by block: E[x|z] for z of the prior, or draws of p(x|z)."""
        for block, start in enumerate(range(0, n, _DRAWN_ROWS)):
            z = self.model.sample_prior(_DRAWN_ROWS, generator(seed, "sample", block, 0)).cpu()
            for part in self.blocks(len(z)):
                left = n - start - part.start
                if left <= 0:
                    break
                # Noise is drawn for the whole part: fewer draws of a generator are not the first of more.
                codes = z[part] if noise else z[part][:left]
                likelihood = self.network.decode(self._tensor(codes.numpy()))
                x = likelihood.mean
                if noise:
                    x = likelihood.sample(generator(seed, "sample", block, 1 + part.start))[:left]
                yield self._write(x)

    @torch.inference_mode()
    def impute(self, stored: Array) -> Numbers:
        """Rows (n, C) with their missing cells filled by E[x|observed cells], of categories by the likeliest level.

        The expectation is over z ~ q(z|x), each code weighted by p(x, z)/q(z|x) as in importance sampling (Mattei &
        Frellsen 2019), so that it is the model's own posterior mean also where the encoder is only near it. Where the
        model was trained on complete rows, missing cells start at 0 in its units and are decoded again and again.
        """
        x, network = self.read(stored), self.network
        if not self.space.missing:
            missing = x.isnan()
            filled = x.nan_to_num(0.0)
            for _ in range(_ROUNDS):
                filled = torch.where(missing, network.decode(network.encode(filled).mu).mean, filled)
            return self._fill(stored, filled)
        z, weights = self._weighted_codes(x)
        expected = torch.zeros(len(x), *self.space.output_shape, dtype=x.dtype, device=x.device)
        for k in range(z.shape[1]):
            expected += weights[:, k, None] * network.decode(z[:, k]).expected
        return self._fill(stored, network.likelihood.cells(expected))

    @torch.inference_mode()
    def draw_missing(self, stored: Array, n_draws: int, seed: int, block: int = 0) -> list[Numbers]:
        """``n_draws`` times the rows with their missing cells from p(missing|observed), for multiple imputation."""
        x = self.read(stored)
        z, weights = self._weighted_codes(x)
        tables = []
        for number in range(n_draws):
            draws = generator(seed, "sample", block, number)
            index = torch.multinomial(weights.cpu(), 1, generator=draws)[:, 0].to(z.device)
            likelihood = self.network.decode(z[torch.arange(len(z), device=z.device), index])
            tables.append(self._fill(stored, likelihood.sample(draws)))
        return tables

    def _weighted_codes(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Codes of every row (n, K, d_z) and their weights (n, K), which sum to 1."""
        network = self.network
        posterior = network.encode(x)
        if posterior.sigma is None:
            return posterior.mu[:, None], torch.ones(len(x), 1, dtype=x.dtype, device=x.device)
        codes, logs = [], []
        for z in self._draws(posterior, IMPUTATION_DRAWS):
            codes.append(z)
            if network.prior is None:
                joint = network.decode(z).log_prob(x) + StandardNormal(network.latent_dim).log_prob(z)
                logs.append(joint - posterior.log_prob(z))
            else:  # a prior of the objective's own has no density here: every code counts alike
                logs.append(torch.zeros(len(x), dtype=x.dtype, device=x.device))
        return torch.stack(codes, 1), torch.stack(logs, 1).softmax(1)

    def _draws(self, posterior: Posterior, n: int) -> Iterator[Tensor]:
        """n codes of every row, from the same noise for all, in pairs of opposite noise."""
        half = standard_normal((n // 2, self.model.latent_dim), 0, "evaluate").to(posterior.mu)
        for epsilon in torch.cat([half, -half]):
            yield posterior.sample(epsilon.expand(len(posterior), -1))

    def _fill(self, stored: Array, x: Tensor) -> Numbers:
        """The stored rows with x, in the user's units, where they are NaN."""
        answers = self.in_user_units(x).numpy()
        return np.where(np.isnan(np.asarray(stored, np.float64)), answers, stored).astype(np.float64)

    def _tensor(self, values: Array) -> Tensor:
        return torch.from_numpy(np.array(values, self.dtype)).to(self._device)

    def _write(self, x: Tensor) -> Numbers:
        """x in the user's units, in :attr:`dtype`."""
        result: Numbers = self.in_user_units(x).numpy().astype(self.dtype, copy=False)
        return result


def has_elbo(objective: Objective) -> bool:
    """Whether :meth:`Codec.elbo` applies to this objective's models: a stochastic encoder and the prior N(0, I)."""
    return objective.stochastic and not objective.own_prior


def open_codec(path: Path, sha256: str | None = None) -> Codec:
    """The model in a model or run directory; ``sha256`` is the digest it must have."""
    if (path / "checkpoints").is_dir() and not (path / "model").is_dir():
        raise RunError(f"{path} has not finished: continue it with `wiseale resume {path}` first")
    return Codec(*load_model(path, sha256))
