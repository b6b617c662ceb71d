"""A saved model, whoever trained it, as a fitted estimator."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from wiseale import config
from wiseale.config import parse_spec
from wiseale.data.defaults import Length, choose_length
from wiseale.data.source import split_path
from wiseale.estimator.estimator import AutoEncoder
from wiseale.estimator.fit import flatten
from wiseale.likelihoods import TableSettings
from wiseale.models.inference import open_codec
from wiseale.models.places import HUB, locate
from wiseale.runs.checkpoint import newest_state
from wiseale.runs.run import Run
from wiseale.spaces import MixedSpace, TableSpace

_TRAINED_WITH = ("batch_size", "max_epochs", "lr", "prior_warmup", "max_grad_norm", "patience", "held_out")


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
    space = codec.space
    estimator.set_params(standardize=space.scaling)
    estimator._adopt(codec, f"rows of shape {space.x_shape}, read from {place}")
    estimator.n_features_in_ = space.x_shape[0]
    if isinstance(space, TableSpace):
        estimator.set_params(**_of_columns(space, model_config.likelihood))
        # Columns of a table of numbers alone that are not learned from are not counted.
        ignored = [name for name, _ in space.ignored] if space.missing else []
        estimator.n_features_in_ += len(ignored)
        if space.named:
            estimator.feature_names_in_ = np.array([*space.names, *ignored], dtype=object)
    estimator.seed_, estimator.history_, estimator.best_epoch_ = 0, [], None
    if (directory / "model").is_dir():
        run = Run.open(directory)
        estimator.set_params(**_of_training(run))
        estimator.seed_ = run.settings.seed
        estimator.history_ = [flatten(epoch) for epoch in run.history]
        newest = newest_state(run.checkpoints)
        estimator.best_epoch_ = newest.progress.kept_epoch if newest else None
    estimator.n_epochs_ = len(estimator.history_)
    return estimator


def _of_columns(space: TableSpace, likelihood: str) -> dict[str, Any]:
    """The parameters that say what a table's columns are."""
    kinds = {name: "ignore" for name, reason in space.ignored if reason == "as you said"}
    if isinstance(space, MixedSpace):
        kinds |= {column.name: "count" if column.is_count else column.kind for column in space.columns}
        if config.build("likelihood", likelihood) == TableSettings():
            likelihood = "auto"  # what is chosen for these kinds
    return {"column_kinds": (space.named and kinds) or None, "unseen": space.unseen, "likelihood": likelihood}


def _of_training(run: Run) -> dict[str, Any]:
    """How a run was trained, as parameters; its length is ``"auto"`` where it is the one that would be chosen."""
    settings, facts = run.settings, run.facts
    known = {name: getattr(settings, name) for name in _TRAINED_WITH} | {"random_state": settings.seed}
    chosen = choose_length(None, "auto", facts.steps_per_epoch, watched=facts.n_held_out > 0)
    if Length(settings.max_epochs, settings.patience, settings.watch_every) == chosen:
        known |= {"max_epochs": "auto", "patience": "auto"}
    return known | {"missing": parse_spec(f":{split_path(settings.data)[1]}")[1].get("missing", "learn")}
