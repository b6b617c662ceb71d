"""What the estimator is given: its parameters as settings, X as the rows or cells that the model takes."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import torch
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from wiseale import config
from wiseale.config import SCIENCE, SPECS, Settings, TrainConfig, from_values
from wiseale.data.arrays import ChannelsError
from wiseale.data.dataset import Array, row_blocks
from wiseale.data.tables.blocks import Selection, gather
from wiseale.data.tables.frames import has_missing, learn_matrix, raw_blocks, select_all
from wiseale.data.tables.mixed import encoded
from wiseale.errors import ConfigError, DataError
from wiseale.estimator.fit import learn_frame, said_in_python
from wiseale.models.inference import Codec, Numbers, has_elbo
from wiseale.objectives import make_objective
from wiseale.registry import did_you_mean
from wiseale.spaces import TableSpace
from wiseale.spaces.columns import KindError, Unseen
from wiseale.spaces.frames import frame_names, library_of, pick
from wiseale.training.plan import is_small_step, torch_threads

Standardize = Literal["auto", "none", "columns", "global"]

OPEN = {item.name for item in fields(TrainConfig) if item.default is None}
"""Settings that are chosen to suit the data where they are not given."""

TRAINING = (*(name for name in SCIENCE if name not in ("data", "columns", "missing", "unseen")), "device")
"""Settings of training that may be parameters of an estimator; those of the data are its own."""

_READ_BY = {".parquet": "pandas.read_parquet", ".npy": "numpy.load", ".npz": "numpy.load", ".tsv": "pandas.read_table"}
_REFUSED = "fill it, or say missing='learn' and fit on rows that have missing cells"
_NONE_SEEN = "the model was fitted on rows without any: fit it on rows that have some, or fill it first"
_IN_TABLES = "fill it first: missing cells are learned in tables, not in signals or images"


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
    for value in array.flat if array.dtype.kind in "OUS" else ():
        if isinstance(value, str | bytes):
            try:
                float(value)
            except ValueError:
                return str(value)
    return None


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


def scores(estimator: Any) -> bool:
    """Whether there is an ELBO to score by; an objective that cannot be read is left for ``fit`` to refuse."""
    try:
        return has_elbo(make_objective(as_spec("objective", estimator.objective)))
    except (ConfigError, TypeError):
        return True


def positions(X: Any, space: TableSpace) -> tuple[int, ...]:
    """Where the columns that are learned from are in a frame."""
    names = frame_names(X)
    if not space.named:
        return tuple(range(len(names)))
    for name in space.names:
        if name not in names:
            raise DataError(f'X has no column "{name}", which the model learned from{did_you_mean(name, names)}')
    return tuple(names.index(name) for name in space.names)


def read_cells(X: Any, space: TableSpace, unseen: Unseen) -> Array:
    """The cells of a frame or matrix as rows of a space, (n, C)."""
    selection = Selection("X", frame_names(X), positions(X, space), ()) if library_of(X) else select_all(X)
    x, _ = gather(selection, encoded(space, selection, partial(raw_blocks, X), unseen))
    if len(x) == 0:
        raise DataError("X has 0 sample(s): at least 1 is needed")
    return x


def as_objects(x: Any) -> Array:
    """A matrix whose cells may be words, as Python objects."""
    x = np.asarray(x, object)
    if x.ndim != 2:
        raise DataError(f"X has the shape {x.shape}, but the model takes a table")
    return np.array([[None if isinstance(v, float) and math.isnan(v) else v for v in row] for row in x], object)


class ChecksInput:
    """The parameters and X of an estimator, checked and put in the terms of the rest of the package."""

    get_params: Callable[..., dict[str, Any]]
    column_kinds: Any
    missing: Any
    unseen: Any
    random_state: Any
    x_shape_: tuple[int, ...]
    _codec: Codec

    def _settings(self) -> TrainConfig:
        """The parameters as the command line's settings, checked by the same rules."""
        defaults = type(self)().get_params(deep=False)
        given: dict[str, Any] = {"seed": as_seed(self.random_state)}
        for name, value in self.get_params(deep=False).items():
            if name not in TRAINING:
                continue
            if value is None and isinstance(defaults[name], int | float):
                raise ConfigError(f"{name} must be a number, got None")
            is_open = isinstance(value, str) and value == defaults[name] == "auto" and name in OPEN
            given[name] = None if is_open else as_spec(name, value) if name in SPECS and value is not None else value
        return from_values(TrainConfig, given)

    def _learned(self, X: Any) -> tuple[Array, TableSpace | None]:
        """What ``fit`` learns from, X as an array or its cells, and their space where columns have kinds or types."""
        refuse_no_data(X)
        config.convert("missing", self.missing, Literal["learn", "error"])
        config.convert("unseen", self.unseen, Unseen)
        given = from_torch(X)
        if library_of(given):
            space, cells = learn_frame(given, self.column_kinds, self.missing, self.unseen)
            if cells is None:
                kept = pick(given, space.names) if space.ignored else given
                return self._validated(kept, reset=True), space
            validate_data(self, given, reset=True, skip_check_array=True)
            if len(cells) < 2:
                raise ValueError(f"X has {len(cells)} sample(s): at least 2 are needed")
            return cells, space
        if self.column_kinds:
            raise ConfigError("column_kinds names columns, and X has no names: give a data frame")
        x = self._validated(given, reset=True, missing=self.missing == "learn")
        if not has_missing(x):
            return x, None
        if x.ndim != 2:
            raise _missing_error(x, self._names, _IN_TABLES)
        return learn_matrix(x, "X")

    def _cells(self, X: Any, *, missing: bool = False) -> Array:
        """X as the rows the model takes: the cells of a table, or a finite array of a shape that fits."""
        check_is_fitted(self)
        refuse_no_data(X)
        given = from_torch(X)
        space = self._codec.space
        if not isinstance(space, TableSpace):
            return self._validated(given, missing=missing)
        if not space.missing:
            if space.frame and library_of(given):
                if space.ignored and set(space.names) <= set(frame_names(given)):
                    given = pick(given, space.names)
                if missing:
                    return read_cells(given, space, self.unseen)
            return self._validated(given, missing=missing)
        learn = missing or self.missing == "learn"
        if library_of(given) or np.asarray(given).dtype.kind in "OUS":
            if not space.named:  # columns are counted, and so they must be as many
                validate_data(self, given, reset=False, skip_check_array=True)
            x = read_cells(given if library_of(given) else as_objects(given), space, self.unseen)
        else:
            x = read_cells(self._validated(given, missing=True), space, self.unseen)
        if not learn and has_missing(x):
            raise _missing_error(x, space.names if space.named else (), _REFUSED)
        return x

    def _validated(self, X: Any, *, reset: bool = False, missing: bool = False) -> Array:
        """X as an array of a shape that fits, finite but for ``missing`` cells; in ``fit`` (``reset``) of any type."""
        if not reset:
            check_is_fitted(self)
        try:
            x: Array = validate_data(
                self,
                from_torch(X),
                reset=reset,
                dtype="numeric" if reset else [np.float64, np.float32, np.uint8],
                allow_nd=True,
                ensure_min_samples=2 if reset else 1,
                ensure_all_finite=False,  # below, with the place
            )
        except ValueError:
            if (word := word_in(X)) is None:
                raise
            advice = "give the data frame itself (fit(df), not fit(df.values)), whose columns have names and kinds"
            raise InvalidInputError(f"X is an array with words in it, such as {word!r}: {advice}") from None
        if x.ndim > 4 or math.prod(x.shape[1:]) == 0:
            shapes = "(n, features), (n, channels, length) or (n, channels, height, width)"
            raise ValueError(f"X has the shape {x.shape}, but AutoEncoder takes {shapes}")
        if not reset and x.shape[1:] != self.x_shape_:
            raise ValueError(f"X has rows of shape {x.shape[1:]}, but AutoEncoder was fitted on {self.x_shape_}")
        _refuse_infinity(x, self._names)
        if not missing and has_missing(x):
            advice = _REFUSED if self.missing == "error" else _NONE_SEEN
            raise _missing_error(x, self._names, advice if x.ndim == 2 else _IN_TABLES)
        return x

    @property
    def _names(self) -> tuple[str, ...]:
        """Names of the columns of X, where it has any."""
        return tuple(getattr(self, "feature_names_in_", ()))

    def _by_blocks(self, x: Array, function: Callable[[Array], Numbers], dtype: np.dtype[Any] | None = None) -> Numbers:
        """The function's results on all rows: float32 where the rows are float32, else float64."""
        dtype = dtype or np.dtype(np.float32 if x.dtype == np.float32 else np.float64)
        with torch_threads(1) if self._is_small(len(x)) else nullcontext(), as_value_error():
            for part in self._codec.blocks(len(x)):
                block = function(x[part])
                if part.start == 0:
                    result = np.empty((len(x), *block.shape[1:]), dtype)
                result[part] = block
        return result

    def _is_small(self, rows: int) -> bool:
        """Whether one thread is enough: on a busy machine more would wait for each other."""
        used = self._codec.model_config
        network, likelihood = config.build("network", used.network), config.build("likelihood", used.likelihood)
        return is_small_step(network, likelihood, used.space, used.latent_dim, rows)


def _refuse_infinity(x: Array, names: tuple[str, ...]) -> None:
    """An error that names the first infinite value."""
    if x.dtype.kind == "f" and (place := _first(x, np.isinf)):
        raise InvalidInputError(
            f"Input X contains infinity: row {place[0] + 1} of X (counted from 1) has "
            f"{float(x[place]):g}{_in_column(names, place)}: fill or drop it; wiseale does not guess"
        )


def _missing_error(x: Array, names: tuple[str, ...], advice: str) -> ValueError:
    """That the first missing cell of x is in the way, in one line; columns without a name are counted from 1."""
    place = _first(x, np.isnan)
    cell = f"a missing cell{_in_column(names, place)}" if x.ndim == 2 else "a missing value"
    return InvalidInputError(f"Input X contains NaN: row {place[0] + 1} (counted from 1) has {cell}; {advice}")


def _first(x: Array, test: Callable[[Array], Array]) -> tuple[int, ...]:
    """Where the first value that passes the test is, read block by block; empty where none does."""
    for rows in row_blocks(x):
        if (passes := test(x[rows])).any():
            row, *place = np.argwhere(passes)[0].tolist()
            return rows.start + row, *place
    return ()


def _in_column(names: tuple[str, ...], place: tuple[int, ...]) -> str:
    """`` in column "mass"`` of a table, by its number from 1 where it has no name; empty for signals and images."""
    if len(place) > 2:
        return ""
    return f' in column "{names[place[1]]}"' if names else f" in column {place[1] + 1}"
