"""A saved model, whoever trained it, as a fitted estimator."""

from __future__ import annotations

import os

import numpy as np

from wiseale.estimator.estimator import AutoEncoder
from wiseale.estimator.fit import flatten
from wiseale.models.inference import open_codec
from wiseale.models.places import HUB, locate
from wiseale.runs.directory import RunDirectory

_TRAINED_WITH = ("batch_size", "max_epochs", "lr", "prior_warmup", "max_grad_norm", "patience", "held_out")


def load(path: str | os.PathLike[str], sha256: str | None = None) -> AutoEncoder:
    """A model as a fitted :class:`~wiseale.estimator.estimator.AutoEncoder`: of a directory or run, the zoo or the Hub.

    ``path`` is a directory, ``"zoo:NAME"`` (`wiseale zoo` lists them), or ``"hf://owner/name@revision"`` on the Hugging
    Face Hub (extra ``[hub]``); give a commit as the revision, or ``sha256``, for a model that cannot change.

    Its parameters are those it was trained with, as far as they are known: a model directory knows what the model is
    made of, a run directory also how it was trained. Loading runs no code from the directory; ``sha256`` pins a model
    that others may replace: it is the digest of the model's ``manifest.json`` (``sha256sum model/manifest.json``).
    """
    directory = locate(path)
    place = f"{os.fspath(path).partition('@')[0]}@{directory.name}" if os.fspath(path).startswith(HUB) else path
    codec = open_codec(directory, sha256)
    model_config = codec.model_config
    estimator = AutoEncoder(
        model_config.objective,
        model_config.latent_dim,
        network=model_config.network,
        likelihood=model_config.likelihood,
    )
    if model_config.table is not None:
        estimator.set_params(unseen=model_config.table.unseen)
    estimator._adopt(codec, f"rows of shape {model_config.x_shape}, read from {place}")
    estimator.n_features_in_ = model_config.x_shape[0]
    counted = tuple(str(i + 1) for i in range(len(model_config.columns)))  # a file without a header: numbers, not names
    if model_config.columns and model_config.columns != counted:
        estimator.feature_names_in_ = np.array(model_config.columns, dtype=object)
    estimator.seed_, estimator.history_ = 0, []
    if (directory / "model").is_dir():
        run = RunDirectory.open(directory)
        settings = run.read_record().settings
        estimator.set_params(**{name: getattr(settings, name) for name in _TRAINED_WITH}, random_state=settings.seed)
        estimator.seed_ = settings.seed
        estimator.history_ = [flatten(record) for record in run.read_metrics()]
    estimator.n_epochs_ = len(estimator.history_)
    return estimator
