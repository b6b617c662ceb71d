"""Starts a model with a linear path at probabilistic PCA, the optimum of a linear Gaussian auto-encoder."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from wiseale.networks.linear_path import zero_last_layer
from wiseale.networks.model import Model
from wiseale.randomness import shuffled
from wiseale.spaces import Space
from wiseale.spaces.features import CellFeatures
from wiseale.training.batches import Batches

_MOST_ROWS, _MOST_ENTRIES = 20_000, 1 << 25  # rows drawn at the most, and entries of those rows together
_BLOCK_ENTRIES = 1 << 21  # read at a time


class Components(NamedTuple):
    """Principal components of some rows, float64 on the CPU; ``residual`` is the variance per entry that they leave."""

    mean: Tensor  # (D,)
    variances: Tensor  # descending, (d_z,)
    directions: Tensor  # orthonormal columns, (D, d_z)
    residual: float


def principal_components(x: Tensor, count: int) -> Components:
    """The leading components of rows x, (n, D), n ≥ 2, by the eigenvectors of the smaller of xᵀx and xxᵀ.

    Components beyond the rank of the rows have variance 0 and any direction.

    >>> components = principal_components(torch.tensor([[-1.0, 0.0], [1.0, 0.0]], dtype=torch.float64), 1)
    >>> components.variances, components.directions.abs(), components.residual
    (tensor([1.], dtype=torch.float64), tensor([[1.],
            [0.]], dtype=torch.float64), 0.0)
    """
    mean, (n, entries) = x.mean(0), x.shape
    centred = x - mean
    product = centred.T @ centred if entries <= n else centred @ centred.T
    values, vectors = torch.linalg.eigh(product / n)
    kept = min(count, n, entries)
    variances = values.flip(0)[:kept].clamp_min(0)
    directions = vectors.flip(1)[:, :kept]
    if n < entries:
        lengths = (variances * n).sqrt()
        directions = centred.T @ directions / lengths.clamp_min(1e-300)
        directions = torch.where(lengths > 1e-9 * lengths[0].clamp_min(1e-300), directions, 0.0)
    residual = float((centred.square().sum() / n - variances.sum()).clamp_min(0)) / max(entries - kept, 1)
    pad = nn.functional.pad
    return Components(mean, pad(variances, (0, count - kept)), pad(directions, (0, count - kept)), residual)


@torch.no_grad()
def start_at_pca(model: Model, rows: Batches, seed: int) -> None:
    """Set the linear path, sigma and the noise to the optimum of the linear model; the network adds 0 to it.

    With loadings b_k (the decoder's columns, ‖b_k‖² = s_k) and noise σ² the posterior is exactly N(mu, diag sigma²),
    mu_k = b_kᵀ(x − m)/(s_k + σ²), sigma_k² = σ²/(s_k + σ²); the likelihood is greatest for s_k = λ_k − σ², where λ_k is
    the variance along component k and σ² what is left per entry (Tipping & Bishop 1999). A deterministic encoder starts
    at whitened components, s_k = λ_k and σ = 0.
    """
    assert model.linear is not None
    cells = _sample(rows, math.prod(model.x_shape), seed)
    # Features of cells are computed in float32, as in training.
    x = model.features(cells.to(next(model.parameters()))).cpu().double() if model.space.missing else cells
    components = principal_components(x, model.latent_dim)
    noise = model.likelihood.start_noise(components.residual)
    sizes = components.variances if not model.stochastic else (components.variances - noise).clamp_min(0)
    spread = sizes + (noise if model.stochastic else 0.0)
    weights = (components.directions * (sizes.sqrt() / spread.clamp_min(1e-12))).T
    loadings = components.directions * sizes.sqrt()
    codes = (x - components.mean) @ weights.T
    decoder, bias = model.likelihood.start_decoder(*model.features.entries(components.mean, loadings), cells, codes)

    model.linear.encoder.weight.copy_(weights)
    model.linear.encoder.bias.copy_(-weights @ components.mean)
    model.linear.decoder.weight.copy_(decoder)
    model.linear.decoder.bias.copy_(bias)
    model.head.start_at((noise / spread.clamp_min(1e-12)).sqrt())
    zero_last_layer(model.decoder)


@torch.no_grad()
def fit_features(modules: nn.Module, space: Space, rows: Batches, seed: int) -> None:
    """Centre and scale what encoders see of cells by the training rows."""
    fitted = [module for module in modules.modules() if isinstance(module, CellFeatures)]
    if fitted:
        x = _sample(rows, math.prod(space.x_shape), seed)
        for features in fitted:
            features.fit(x)


def _sample(rows: Batches, entries: int, seed: int) -> Tensor:
    """Rows in the network's units, (n, D) in float64 on the CPU: all if they are few, else some drawn by the seed."""
    count = min(len(rows), _MOST_ROWS, max(2, _MOST_ENTRIES // entries))
    positions = shuffled(len(rows), seed, "start")[:count].sort().values
    blocks = torch.split(positions, max(1, _BLOCK_ENTRIES // entries))
    return torch.cat([rows.read(block).flatten(1).cpu() for block in blocks]).double()
