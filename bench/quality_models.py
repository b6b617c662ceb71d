"""The models of the quality benchmark, fitted to a split: PCA, ``AutoEncoder`` and pythae's defaults."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import PCA

from bench.plain import quiet
from bench.quality_data import Array, Split
from wiseale import AutoEncoder
from wiseale.objectives import make_objective

PYTHAE = ("pythae VAE", "pythae AE")
PYTHAE_EPOCHS, PYTHAE_BATCH = 100, 64  # its defaults


@dataclass(frozen=True)
class Fit:
    """A fitted model on the split's rows: codes, the held-out posterior's widths and reconstructions, and the cost."""

    train_codes: Array
    test_codes: Array
    x_hat: Array
    cpu_seconds: float
    sigma: Array | None = None
    elbo: float | None = None
    steps: int | None = None
    epochs: int | None = None


def fit_pca(split: Split, dim: int) -> Fit:
    train, test = (split.standardised(x).reshape(len(x), -1) for x in (split.train, split.test))
    started = time.process_time()
    pca = PCA(min(dim, *train.shape), svd_solver="full").fit(train)
    seconds = time.process_time() - started
    codes = pca.transform(test)
    x_hat = pca.inverse_transform(codes).reshape(split.test.shape) * split.scale + split.mean
    return Fit(pca.transform(train), codes, x_hat, seconds, elbo=pca.score(test))


def fit_ours(split: Split, dim: int, seed: int, settings: dict[str, Any]) -> Fit:
    estimator = AutoEncoder(**{"latent_dim": dim, "random_state": seed, **settings})
    started = time.process_time()
    estimator.fit(split.train)
    seconds = time.process_time() - started
    codes = estimator.transform(split.test)
    return Fit(
        estimator.transform(split.train),
        codes,
        estimator.inverse_transform(codes),
        seconds,
        sigma=estimator.posterior(split.test)[1] if make_objective(estimator.objective_).stochastic else None,
        elbo=estimator.score(split.test) + split.log_scale if hasattr(estimator, "score") else None,
        steps=estimator.history_[-1]["step"],
        epochs=estimator.n_epochs_,
    )


def fit_pythae(split: Split, dim: int, seed: int, name: str, budget: float) -> Fit:
    """pythae's model, network and trainer as they come, until the budget or its 100 epochs are used up.

    Its decoder ends in a sigmoid, so the rows are scaled to [0, 1] by the smallest and largest training values, of
    each column of a table and of all entries of signals and images.
    """
    from pythae import models
    from pythae.data.datasets import BaseDataset
    from pythae.trainers import BaseTrainer, BaseTrainerConfig

    axis = 0 if split.train.ndim == 2 else None
    low = split.train.min(axis).astype(np.float64)
    span = split.train.max(axis) - low
    span = np.where(span > 0, span, 1.0)
    train, test = (torch.from_numpy((x - low) / span).float() for x in (split.train, split.test))
    torch.manual_seed(seed)
    with quiet(), tempfile.TemporaryDirectory() as folder:
        model = getattr(models, name)(getattr(models, f"{name}Config")(train.shape[1:], dim))
        config = BaseTrainerConfig(folder, per_device_train_batch_size=PYTHAE_BATCH, seed=seed, no_cuda=True)
        trainer = BaseTrainer(model, BaseDataset(train, torch.zeros(len(train))), training_config=config)
        trainer.prepare_training()
        started, epochs = time.process_time(), 0
        while epochs < PYTHAE_EPOCHS and time.process_time() - started < budget:
            epochs += 1
            trainer.train_step(epochs)
        seconds = time.process_time() - started
    model.eval()
    with torch.no_grad():
        encoded = model.encoder(test)
        sigma = (0.5 * encoded.log_covariance).exp().numpy() if "log_covariance" in encoded else None
        x_hat = model.decoder(encoded.embedding).reconstruction.reshape(test.shape).numpy() * span + low
        train_codes = model.encoder(train).embedding.numpy()
    steps = epochs * -(-len(train) // PYTHAE_BATCH)
    return Fit(train_codes, encoded.embedding.numpy(), x_hat, seconds, sigma, steps=steps, epochs=epochs)
