"""Missing cells filled by a trained model, from what the row's observed cells say about its code."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from wiseale.data.dataset import Array
from wiseale.models.inference import Codec, Numbers
from wiseale.networks.model import Model
from wiseale.priors import StandardNormal
from wiseale.randomness import generator, standard_normal

CODES = 64
"""Codes drawn for each row, in pairs of opposite noise."""

_ROUNDS = 50  # of an encoder that was trained on complete rows


@torch.inference_mode()
def impute(codec: Codec, stored: Array) -> Numbers:
    """Rows (n, C) with their missing cells filled by E[x|observed cells], of categories by the likeliest level.

    The expectation is over z ~ q(z|x), each code weighted by p(x, z)/q(z|x) as in importance sampling (Mattei &
    Frellsen 2019), so that it is the model's own posterior mean also where the encoder is only near it.
    """
    x = codec.read(stored)
    network = codec.network
    if not codec.space.missing:
        return _fill(codec, stored, _by_rounds(network, x))
    z, weights = _weighted_codes(network, x)
    expected = torch.zeros(len(x), *codec.space.output_shape, dtype=x.dtype, device=x.device)
    for k in range(z.shape[1]):
        expected += weights[:, k, None] * network.decode(z[:, k]).expected
    return _fill(codec, stored, network.likelihood.cells(expected))


@torch.inference_mode()
def draw(codec: Codec, stored: Array, n_draws: int, seed: int, block: int = 0) -> list[Numbers]:
    """``n_draws`` times the rows with their missing cells tables from p(missing|observed), for multiple imputation."""
    x = codec.read(stored)
    z, weights = _weighted_codes(codec.network, x)
    tables = []
    for number in range(n_draws):
        draws = generator(seed, "sample", block, number)
        index = torch.multinomial(weights.cpu(), 1, generator=draws)[:, 0].to(z.device)
        likelihood = codec.network.decode(z[torch.arange(len(z), device=z.device), index])
        tables.append(_fill(codec, stored, likelihood.sample(draws)))
    return tables


def _weighted_codes(network: Model, x: Tensor) -> tuple[Tensor, Tensor]:
    """Codes of every row (n, K, d_z) and their weights (n, K), which sum to 1."""
    posterior = network.encode(x)
    if posterior.sigma is None:
        return posterior.mu[:, None], torch.ones(len(x), 1, dtype=x.dtype, device=x.device)
    half = standard_normal((CODES // 2, network.latent_dim), 0, "evaluate").to(x)
    codes, logs = [], []
    for epsilon in torch.cat([half, -half]):
        z = posterior.sample(epsilon.expand(len(x), -1))
        codes.append(z)
        if network.prior is None:
            joint = network.decode(z).log_prob(x) + StandardNormal(network.latent_dim).log_prob(z)
            logs.append(joint - posterior.log_prob(z))
        else:  # a prior of the objective's own has no density here: every code counts alike
            logs.append(torch.zeros(len(x), dtype=x.dtype, device=x.device))
    return torch.stack(codes, 1), torch.stack(logs, 1).softmax(1)


def _by_rounds(network: Model, x: Tensor) -> Tensor:
    """Cells for an encoder that knows no missing ones: from 0 in the network's units on, decoded again and again.

    Where x is standardised, 0 is the mean of each column.
    """
    missing = x.isnan()
    filled = x.nan_to_num(0.0)
    for _ in range(_ROUNDS):
        filled = torch.where(missing, network.decode(network.encode(filled).mu).mean, filled)
    return filled


def _fill(codec: Codec, stored: Array, x: Tensor) -> Numbers:
    """The stored rows with x, in the user's units, where they are NaN."""
    answers = codec.in_user_units(x).numpy()
    return np.where(np.isnan(np.asarray(stored, np.float64)), answers, stored).astype(np.float64)
