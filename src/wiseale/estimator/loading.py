"""Saved models: as a fitted estimator, and as a function from batch to batch for engines that map over large data."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wiseale import config
from wiseale.config import SPECS, parse_spec
from wiseale.data.dataset import Array
from wiseale.data.defaults import Length, choose_length
from wiseale.data.source import split_path
from wiseale.errors import DataError
from wiseale.estimator.estimator import AutoEncoder
from wiseale.estimator.fit import flatten
from wiseale.estimator.inputs import TRAINING, InvalidInputError
from wiseale.likelihoods import TableSettings
from wiseale.models.files import code_names, sigma_names
from wiseale.models.inference import open_codec
from wiseale.models.model_file import model_digest, model_directory
from wiseale.models.places import HUB, locate
from wiseale.runs.checkpoint import newest_state
from wiseale.runs.run import Run
from wiseale.spaces import MixedSpace, TableSpace
from wiseale.spaces.frames import beside, frame_names, library_of, pick


def load(path: str | os.PathLike[str], sha256: str | None = None) -> AutoEncoder:
    """A model as a fitted :class:`~wiseale.estimator.estimator.AutoEncoder`: of a directory or run, the zoo or the Hub.

    ``path`` is a directory, ``"zoo:NAME"`` (`wiseale zoo` lists them), or ``"hf://owner/name@revision"`` on the Hugging
    Face Hub (extra ``[hub]``). Loading runs no code from it. A model that others may replace is pinned by a commit as
    the revision, or by ``sha256``, the digest of its ``manifest.json`` (``sha256sum model/manifest.json``).

    Its parameters are those it was trained with, as far as they are known, so that a clone trains alike: of a model
    directory what the model is made of (``column_kinds`` of all columns, said or guessed), and the others are the
    defaults, ``history_`` is empty, ``best_epoch_`` None and ``seed_`` 0; of a run directory all that AutoEncoder has.
    ``feature_names_in_`` names the columns that are learned from first, then those that are not.
    """
    directory = locate(path)
    place = f"{os.fspath(path).partition('@')[0]}@{directory.name}" if os.fspath(path).startswith(HUB) else path
    codec = open_codec(directory, sha256)
    space, used = codec.space, codec.model_config
    estimator = AutoEncoder(used.objective, used.latent_dim, network=used.network, likelihood=used.likelihood)
    estimator.set_params(standardize=space.scaling)
    estimator._adopt(codec, f"rows of shape {space.x_shape}, read from {place}")
    estimator.n_features_in_ = space.x_shape[0]
    if isinstance(space, TableSpace):
        estimator.set_params(**_of_columns(space, used.likelihood))
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
    known = AutoEncoder().get_params()
    names = [name for name in TRAINING if name in known and name not in (*SPECS, "latent_dim", "device")]
    parameters = {name: getattr(settings, name) for name in names} | {"random_state": settings.seed}
    length = choose_length(None, "auto", facts.steps_per_epoch, watched=facts.n_held_out > 0)
    if Length(settings.max_epochs, settings.patience, settings.watch_every) == length:
        parameters |= {"max_epochs": "auto", "patience": "auto"}
    return parameters | {"missing": parse_spec(f":{split_path(settings.data)[1]}")[1].get("missing", "learn")}


class Embedder:
    """Codes of a batch, as a picklable callable: it carries the model's path, and each process loads the model once.

    A model that is saved again at this path is loaded again; ``sha256`` refuses it.

    A batch is a pandas, polars or pyarrow table, a dict of arrays (Ray Data), or an array. The result is of the same
    kind: codes in columns ``z1``, ``z2``, … (float32) after the columns to keep, or an array (n, latent_dim).

    Args:
        model: a run or model directory that every process can read.
        sigma: also the posteriors' standard deviations, ``sigma1``, ``sigma2``, …
        error: also each row's reconstruction error, ``error``.
        keep: columns of the batch to pass on, such as an identifier.
        column: the column that holds whole observations (images, signals) in place of a column for each feature.
        sha256: the digest that the model must have, see :func:`wiseale.load`.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from wiseale import AutoEncoder, Embedder
        >>> X = np.random.default_rng(0).normal(size=(64, 3))
        >>> folder = tempfile.mkdtemp()
        >>> _ = AutoEncoder(latent_dim=2, max_epochs=1, random_state=0).fit(X).save(folder + "/model")
        >>> Embedder(folder + "/model")(X[:5]).shape
        (5, 2)
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        sigma: bool = False,
        error: bool = False,
        keep: Sequence[str] = (),
        column: str | None = None,
        sha256: str | None = None,
    ) -> None:
        self.model = str(Path(model).expanduser().absolute())
        self.sigma = sigma
        self.error = error
        self.keep = tuple(keep)
        self.column = column
        self.sha256 = sha256

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the result's columns after those that are kept."""
        latent_dim = self._estimator._codec.model.latent_dim
        names = code_names(latent_dim) + (sigma_names(latent_dim) if self.sigma else ())
        return names + (("error",) if self.error else ())

    def __call__(self, batch: Any) -> Any:
        """The codes of a batch; an empty one gives an empty result with the same columns."""
        library = library_of(batch)
        named = bool(library) or isinstance(batch, Mapping)
        n = len(next(iter(batch.values()), ())) if named and not library else len(batch)
        rows = self._features(batch, library) if named and n else batch
        codes: Array = self._codes(rows) if n else np.empty((0, len(self.columns)), np.float32)
        if not named:
            return codes
        columns = {name: codes[:, k] for k, name in enumerate(self.columns)}
        if library:
            return beside(pick(batch, self.keep), columns)
        return {name: batch[name] for name in self.keep} | columns

    @property
    def _estimator(self) -> AutoEncoder:
        try:
            digest = model_digest(model_directory(Path(self.model)))
        except (OSError, ValueError):
            digest = ""  # loading says what is wrong
        return _loaded(self.model, self.sha256, digest)

    def _codes(self, x: Any) -> Array:
        model = self._estimator
        with warnings.catch_warnings():  # an array has no names, and those of a dict have been checked
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            parts = list(model.posterior(x)) if self.sigma else [model.transform(x)]
            parts += [model.reconstruction_error(x)[:, None]] if self.error else []
        return np.concatenate(parts, axis=1).astype(np.float32)

    def _features(self, batch: Any, library: str) -> Any:
        """What the model takes from a batch with columns: those it was trained on, or whole observations."""
        if self.column is not None:
            return _observations(batch, library, self.column)
        space = self._estimator._codec.space
        if not space.names:
            raise InvalidInputError("the model takes rows without column names: say which column holds them, column=…")
        names = frame_names(batch) if library else tuple(batch)
        missing = [name for name in space.names if name not in names]
        if missing:
            raise InvalidInputError(f'the batch has no column "{missing[0]}", which the model was trained on')
        if library:
            return pick(batch, space.names)
        kind = object if space.missing else np.float64
        return np.stack([np.asarray(batch[name], kind) for name in space.names], axis=1)


@functools.lru_cache(maxsize=4)
def _loaded(model: str, sha256: str | None, digest: str) -> AutoEncoder:
    """The model with this digest, loaded once by each process."""
    return load(model, sha256)


def _observations(batch: Any, library: str, column: str) -> Array:
    """Whole observations of one column, (n, ...)."""
    if column not in (frame_names(batch) if library else batch):
        raise InvalidInputError(f'the batch has no column "{column}"')
    values = batch[column]
    if library:
        values = values.to_pylist() if library == "pyarrow" else values.to_list()
    try:
        return np.stack([np.asarray(value) for value in values])
    except ValueError:
        raise DataError(f'the observations in column "{column}" differ in shape') from None
