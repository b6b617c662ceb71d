"""A saved model, whoever trained it, as a fitted estimator."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from wiseale import config
from wiseale.config import parse_spec
from wiseale.data.dataset import Scaling
from wiseale.data.defaults import Length, choose_length
from wiseale.data.source import split_path
from wiseale.data.tables.columns import counted_names
from wiseale.estimator.estimator import AutoEncoder
from wiseale.estimator.fit import flatten
from wiseale.estimator.tables import has_names
from wiseale.likelihoods import TableFamily
from wiseale.models.inference import Codec, open_codec
from wiseale.models.places import HUB, locate
from wiseale.networks.model import IdentityStandardizer, Model
from wiseale.runs.checkpoint import newest_state
from wiseale.runs.run import Run

_TRAINED_WITH = ("batch_size", "max_epochs", "lr", "prior_warmup", "max_grad_norm", "patience", "held_out")
_SAID_AS = {"poisson": "count", "negative_binomial": "count"}


def load(path: str | os.PathLike[str], sha256: str | None = None) -> AutoEncoder:
    """A model as a fitted :class:`~wiseale.estimator.estimator.AutoEncoder`: of a directory or run, the zoo or the Hub.

    ``path`` is a directory, ``"zoo:NAME"`` (`wiseale zoo` lists them), or ``"hf://owner/name@revision"`` on the Hugging
    Face Hub (extra ``[hub]``); give a commit as the revision, or ``sha256``, for a model that cannot change.

    Loading runs no code from the directory; ``sha256`` pins a model that others may replace: it is the digest of the
    model's ``manifest.json`` (``sha256sum model/manifest.json``).

    Its parameters are those it was trained with, as far as they are known, so that a clone trains alike. A model
    directory knows what the model is made of: ``objective``, ``latent_dim``, ``network``, ``likelihood``,
    ``standardize``, ``column_kinds`` (of all columns, said or guessed) and ``unseen``. It does not know how the model
    was trained: the other parameters are the defaults, ``history_`` is empty, ``best_epoch_`` None and ``seed_`` 0. A
    run directory also knows that, but for settings that AutoEncoder does not have, such as ``--lr-schedule``.
    ``feature_names_in_`` names the columns that are learned from first, then those that are not.
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
    estimator.set_params(standardize=_standardize(codec.model), **_of_columns(codec))
    estimator._adopt(codec, f"rows of shape {model_config.x_shape}, read from {place}")
    ignored = _ignored(codec)
    estimator.n_features_in_ = model_config.x_shape[0] + len(ignored)
    columns = model_config.columns
    if columns and columns != counted_names(len(columns)):  # a file without a header has numbers, not names
        estimator.feature_names_in_ = np.array([*columns, *ignored], dtype=object)
    estimator.seed_, estimator.history_, estimator.best_epoch_ = 0, [], None
    if (directory / "model").is_dir():
        run = Run.open(directory)
        estimator.set_params(**_of_training(run))
        estimator.seed_ = run.settings.seed
        estimator.history_ = [flatten(epoch) for epoch in run.history]
        newest = newest_state(run.directory.checkpoints)
        estimator.best_epoch_ = newest.progress.kept_epoch if newest else None
    estimator.n_epochs_ = len(estimator.history_)
    return estimator


def _standardize(model: Model) -> Scaling:
    if isinstance(model.units, IdentityStandardizer):
        return "none"
    return "columns" if model.units.mean.ndim else "global"


def _of_columns(codec: Codec) -> dict[str, Any]:
    """The parameters that say what a table's columns are; none for other models."""
    schema, likelihood = codec.model_config.table, codec.model_config.likelihood
    if schema is None:
        return {}
    kinds = {name: "ignore" for name, reason in schema.ignored if reason == "as you said"}
    if codec.model.table is not None:
        kinds |= {column.name: _SAID_AS.get(column.kind, column.kind) for column in schema.columns}
        if config.build("likelihood", likelihood) == TableFamily(kinds=schema.kinds):
            likelihood = "auto"  # what is chosen for these kinds
    said = kinds if has_names(schema) and kinds else None
    return {"column_kinds": said, "unseen": schema.unseen, "likelihood": likelihood}


def _ignored(codec: Codec) -> list[str]:
    """Columns that X has and the model does not learn from; those of a table of numbers alone are not counted."""
    schema = codec.model_config.table
    return [name for name, _ in schema.ignored] if schema is not None and codec.model.table is not None else []


def _of_training(run: Run) -> dict[str, Any]:
    """How a run was trained, as parameters; its length is ``"auto"`` where it is the one that would be chosen."""
    settings, facts = run.settings, run.facts
    known = {name: getattr(settings, name) for name in _TRAINED_WITH} | {"random_state": settings.seed}
    chosen = choose_length(None, "auto", facts.steps_per_epoch, watched=facts.n_held_out > 0)
    if Length(settings.max_epochs, settings.patience, settings.watch_every) == chosen:
        known |= {"max_epochs": "auto", "patience": "auto"}
    return known | {"missing": parse_spec(f":{split_path(settings.data)[1]}")[1].get("missing", "learn")}
