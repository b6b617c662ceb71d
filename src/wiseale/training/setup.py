"""Builds what the training loop needs from resolved settings and data: batches, and a learner at step 0.

A model with a linear path starts at probabilistic PCA, the optimum of a linear Gaussian auto-encoder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from wiseale.config import SettingError
from wiseale.data import Dataset
from wiseale.data.defaults import suit
from wiseale.models.collapse import ENOUGH_ROWS, ROWS, CodeUse, code_use_of
from wiseale.models.model_file import ModelConfig, load_model
from wiseale.networks.layers import zero_last_layer
from wiseale.networks.model import Model, parameter_count, seeded
from wiseale.platform.machine import require_memory
from wiseale.processes.world import ALONE, World
from wiseale.randomness import derive_seed, shuffled
from wiseale.spaces import Space
from wiseale.spaces.features import CellFeatures
from wiseale.training.batches import Batches, Indices, split_rows
from wiseale.training.learner import Learner
from wiseale.training.settings import RunFacts, RunSettings

_MOST_ROWS, _MOST_ENTRIES = 20_000, 1 << 25  # rows drawn at the most, and entries of those rows together
_BLOCK_ENTRIES = 1 << 21  # read at a time


@dataclass
class Work:
    """Everything the loop needs, built from resolved settings and data."""

    learner: Learner
    train: Batches
    held_out: Batches | None
    settings: RunSettings
    model_config: ModelConfig
    facts: RunFacts
    world: World

    @classmethod
    def prepare(cls, settings: RunSettings, dataset: Dataset, world: World = ALONE) -> Work:
        """A learner at step 0 and its batches; nothing outside is changed."""
        network, likelihood, objective = (settings.spec(name) for name in ("network", "likelihood", "objective"))
        dataset = suit(dataset, likelihood)
        space, latent_dim, seed = dataset.space, settings.latent_dim, settings.seed
        config = ModelConfig(network, likelihood, objective, space, latent_dim, dataset.fingerprint)
        # The weights themselves, their gradients, Adam's two moments, the best so far, and the copy of weights and
        # moments that is being saved.
        what = f"training network {network} with a latent dimension of {latent_dim}"
        require_memory(8 * config.bytes(), what, "choose smaller sizes")

        train_rows, held_out_rows = split_rows(len(dataset.train), settings.held_out, settings.held_out_most, seed)
        scaled = settings.objective.at_scale(settings.batch_size, len(train_rows))
        with seeded(derive_seed(seed, "weights")):
            model = config.build()
            called = scaled.build(space, latent_dim)
        model.units = space.fit_units(dataset.train.x, train_rows)
        learner = Learner.fresh(model, called, settings.lr)
        learner.modules.to(settings.device)
        facts = RunFacts(
            prior_weight=scaled.effective_weight(settings.batch_size, len(train_rows)),
            steps_per_epoch=len(train_rows) // settings.batch_size,
            n_train=len(train_rows),
            n_held_out=len(held_out_rows),
            x_shape=dataset.x_shape,
            parameters=parameter_count(learner.modules),
            standardized=space.scaling,
            data_fingerprint=dataset.fingerprint,
        )

        def batches(rows: Indices) -> Batches:
            place = settings.device
            return Batches(dataset.train, rows, units=model.units, device=place, seed=seed, copies=world.local_size)

        train, held_out = batches(train_rows), batches(held_out_rows) if len(held_out_rows) else None
        fit_features(learner.modules, space, train, seed)
        if model.linear is not None:
            start_at_pca(model, train, seed)
        return cls(learner, train, held_out, settings, config, facts, world)

    def code_use(self) -> CodeUse | None:
        """How much the trained model's codes say about x, on at most 1,000 rows, drawn at random.

        Held-out rows where there are enough, otherwise training rows; None where all of them are the same.
        """
        rows = self.held_out if self.held_out is not None and len(self.held_out) >= ENOUGH_ROWS else self.train
        x = rows.read(shuffled(len(rows), self.settings.seed, "evaluate")[:ROWS].sort().values)
        if bool((x == x[:1]).all()):  # one row, or copies of it: there is nothing to encode
            return None
        return code_use_of(self.learner.model, x, self.settings.seed)


def take_weights(model: Model, init_from: str | None) -> None:
    """Copy the weights of a finished run or a model directory into a model; it keeps its own units."""
    if init_from is None:
        return
    source, _ = load_model(Path(init_from))
    source.units, source.prior = model.units, None
    given, own = source.state_dict(), model.state_dict()
    for name in sorted(given.keys() | own.keys()):
        shapes = [list(state[name].shape) if name in state else "none" for state in (given, own)]
        if shapes[0] != shapes[1]:
            problem = f"{init_from} does not fit this run's network: {name} is {shapes[0]} there and {shapes[1]} here"
            raise SettingError("init_from", problem)
    model.load_state_dict(given)


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
