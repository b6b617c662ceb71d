"""A trained model as a function from batch to batch, for engines that map functions over large data."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wiseale.data.dataset import Array
from wiseale.errors import DataError
from wiseale.estimator.estimator import AutoEncoder
from wiseale.estimator.inputs import InvalidInputError
from wiseale.estimator.loading import load
from wiseale.models.files import code_names, sigma_names
from wiseale.models.model_file import model_digest, model_directory
from wiseale.spaces.frames import beside, frame_names, library_of, pick


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
        missing = [name for name in space.names if name not in _names(batch, library)]
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


def _names(batch: Any, library: str) -> Sequence[str]:
    return frame_names(batch) if library else list(batch)


def _observations(batch: Any, library: str, column: str) -> Array:
    """Whole observations of one column, (n, ...)."""
    if column not in _names(batch, library):
        raise InvalidInputError(f'the batch has no column "{column}"')
    values = batch[column]
    if library:
        values = values.to_pylist() if library == "pyarrow" else values.to_list()
    try:
        return np.stack([np.asarray(value) for value in values])
    except ValueError:
        raise DataError(f'the observations in column "{column}" differ in shape') from None
