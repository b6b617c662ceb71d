"""What people hand to the estimator, in the terms the rest of the package uses."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import torch
from sklearn.utils import check_random_state

from wiseale import config
from wiseale.config import Settings
from wiseale.data.arrays import ChannelsError
from wiseale.errors import ConfigError, DataError
from wiseale.estimator.tables import said_in_python
from wiseale.models.inference import has_elbo
from wiseale.objectives import make_objective
from wiseale.spaces.columns import KindError
from wiseale.spaces.frames import library_of

Standardize = Literal["auto", "none", "columns", "global"]


class InvalidInputError(ConfigError, ValueError):
    """A parameter or X cannot be used: one of our errors that is also what scikit-learn raises."""


@contextmanager
def as_value_error() -> Iterator[None]:
    """Turn our errors about settings and data into :class:`InvalidInputError`."""
    try:
        yield
    except KindError as error:
        raise InvalidInputError(error.message(lambda name, kind: said_in_python({name: kind}))) from None
    except ChannelsError as error:
        raise InvalidInputError(error.in_python()) from None
    except (ConfigError, DataError) as error:
        raise InvalidInputError(str(error)) from None


_READ_BY = {".parquet": "pandas.read_parquet", ".npy": "numpy.load", ".npz": "numpy.load", ".tsv": "pandas.read_table"}


def refuse_no_data(X: Any) -> None:
    """An error where X is not data but where it may be read from, or nothing."""
    if X is None:
        raise ConfigError('X is None: give an array or a data frame, such as pandas.read_csv("measurements.csv")')
    if isinstance(X, str | os.PathLike):
        path = os.fspath(X)
        reader = _READ_BY.get(os.path.splitext(path)[1].lower(), "pandas.read_csv")
        raise ConfigError(f"X is the name of a file: read it first, for example by {reader}({json.dumps(path)})")


def word_in(X: Any) -> str | None:
    """A word that an array or a nested list holds; None where it holds none."""
    try:
        array = np.asarray(X)
    except ValueError:  # ragged
        return None
    if array.dtype.kind not in "OUS":
        return None
    return next((str(value) for value in array.flat if isinstance(value, str | bytes) and not _is_number(value)), None)


def _is_number(word: str | bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def as_spec(kind: str, value: Any) -> str:
    """The spec of a registered thing, given as a spec or as settings made in Python."""
    if isinstance(value, Settings):
        return config.spec_of(kind, value)
    if not isinstance(value, str):
        raise ConfigError(f"{kind} must be a name with settings, such as 'name:key=value', got {value!r}")
    return value


def as_seed(random_state: Any) -> int:
    """The seed a ``random_state`` stands for; None asks the system, never numpy's global generator."""
    if random_state is None:
        return int.from_bytes(os.urandom(4), "little")
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def from_torch(values: Any) -> Any:
    """A torch tensor or a masked array as an array, what exports Arrow as an Arrow table; anything else as it is."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan) if values.mask.any() else values.data
    table = hasattr(values, "__arrow_c_stream__") and (hasattr(values, "columns") or hasattr(values, "schema"))
    if table and not library_of(values):
        return pa.table(values)
    if not isinstance(values, torch.Tensor):
        return values
    if values.layout != torch.strided:
        raise TypeError("Sparse data was passed, but dense data is required: use to_dense()")
    values = values.detach().cpu()
    return (values.float() if values.dtype == torch.bfloat16 else values).resolve_conj().resolve_neg().numpy()


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to be chosen."""
    return isinstance(value, str) and value == "auto"


def scores(estimator: Any) -> bool:
    """Whether there is an ELBO to score by; an objective that cannot be read is left for ``fit`` to refuse."""
    try:
        return has_elbo(make_objective(as_spec("objective", estimator.objective)))
    except (ConfigError, TypeError):
        return True
