"""A saved model, whoever trained it, as a fitted estimator."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from wiseale.estimator.estimator import AutoEncoder
from wiseale.estimator.fit import flatten
from wiseale.models.inference import open_codec
from wiseale.runs.directory import RunDirectory

_TRAINED_WITH = ("batch_size", "max_epochs", "lr", "prior_warmup", "max_grad_norm", "patience", "held_out")


def load(path: str | os.PathLike[str]) -> AutoEncoder:
    """The model in a model or run directory as a fitted :class:`~wiseale.estimator.estimator.AutoEncoder`.

    Its parameters are those it was trained with, as far as they are known: a model directory knows what the model is
    made of, a run directory also how it was trained.
    """
    directory = Path(path).expanduser()
    codec = open_codec(directory)
    made_of = codec.made_of
    estimator = AutoEncoder(
        made_of.objective, made_of.latent_dim, network=made_of.network, likelihood=made_of.likelihood
    )
    estimator._adopt(codec, f"rows of shape {made_of.x_shape}, read from {directory}")
    estimator.n_features_in_ = made_of.x_shape[0]
    counted = tuple(str(i + 1) for i in range(len(made_of.columns)))  # a file without a header: numbers, not names
    if made_of.columns and made_of.columns != counted:
        estimator.feature_names_in_ = np.array(made_of.columns, dtype=object)
    estimator.seed_, estimator.history_ = 0, []
    if (directory / "model").is_dir():
        run = RunDirectory.open(directory)
        stored = run.read_config()
        estimator.set_params(**{name: stored[name] for name in _TRAINED_WITH}, random_state=stored["seed"])
        estimator.seed_ = stored["seed"]
        estimator.history_ = [flatten(record) for record in run.read_metrics()]
    estimator.n_epochs_ = len(estimator.history_)
    return estimator
