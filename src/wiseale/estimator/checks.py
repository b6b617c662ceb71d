"""What the estimator is given: its parameters as settings, X as rows that the model takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from wiseale import config
from wiseale.config import TrainConfig, from_values
from wiseale.data.dataset import Array, row_blocks
from wiseale.data.tables.frames import has_missing, learn_matrix
from wiseale.errors import ConfigError
from wiseale.estimator.inputs import (
    InvalidInputError,
    as_seed,
    as_spec,
    as_value_error,
    from_torch,
    is_auto,
    refuse_no_data,
    word_in,
)
from wiseale.estimator.tables import as_objects, learn_frame, read_cells
from wiseale.models.inference import Codec, Numbers
from wiseale.spaces import TableSpace
from wiseale.spaces.columns import Unseen
from wiseale.spaces.frames import frame_names, library_of, pick
from wiseale.training.threads import is_small_step, torch_threads

Missing = Literal["learn", "error"]

_REFUSED = "fill it, or say missing='learn' and fit on rows that have missing cells"
_NONE_SEEN = "the model was fitted on rows without any: fit it on rows that have some, or fill it first"
_IN_TABLES = "fill it first: missing cells are learned in tables, not in signals or images"


class ChecksInput:
    """The parameters and X of an estimator, checked and put in the terms of the rest of the package."""

    objective: Any
    column_kinds: Any
    missing: Any
    unseen: Any
    random_state: Any
    x_shape_: tuple[int, ...]
    _codec: Codec

    def _asked(self) -> TrainConfig:
        """The parameters as the command line's settings, checked by the same rules."""
        automatic = ("network", "likelihood", "batch_size", "max_epochs")
        plain = ("latent_dim", "lr", "prior_warmup", "max_grad_norm", "patience", "held_out", "device", *automatic)
        given = {name: getattr(self, name) for name in plain}
        for name in automatic:
            if is_auto(given[name]):
                given[name] = None
        for kind in ("network", "likelihood"):
            if given[kind] is not None:
                given[kind] = as_spec(kind, given[kind])
        for name in ("latent_dim", "lr", "prior_warmup", "held_out"):
            if given[name] is None:
                raise ConfigError(f"{name} must be a number, got None")
        return from_values(
            TrainConfig,
            {**given, "objective": as_spec("objective", self.objective), "seed": as_seed(self.random_state)},
        )

    def _learned(self, X: Any) -> tuple[Array, TableSpace | None]:
        """What ``fit`` learns from, X as an array or its cells, and their space where columns have kinds or types."""
        refuse_no_data(X)
        config.convert("missing", self.missing, Missing)
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
        result: Numbers | None = None
        with torch_threads(1) if self._is_small(len(x)) else nullcontext():
            for part in self._codec.blocks(len(x)):
                with as_value_error():
                    block = function(x[part])
                if result is None:
                    result = np.empty((len(x), *block.shape[1:]), dtype)
                result[part] = block
        assert result is not None
        return result

    def _is_small(self, rows: int) -> bool:
        """Whether one thread is enough: on a busy machine more would wait for each other."""
        known = self._codec.model_config
        pair = config.build("network", known.network), config.build("likelihood", known.likelihood)
        return is_small_step(*pair, known.space, known.latent_dim, rows)


def _refuse_infinity(x: Array, names: tuple[str, ...]) -> None:
    """An error that names the first infinite value."""
    for rows in row_blocks(x) if x.dtype.kind == "f" else ():
        if (infinite := np.isinf(x[rows])).any():
            row, *place = np.argwhere(infinite)[0].tolist()
            cell = f"{float(x[rows][(row, *place)]):g}{_in_column(names, place)}"
            raise InvalidInputError(
                f"Input X contains infinity: row {rows.start + row + 1} of X (counted from 1) has {cell}: "
                "fill or drop it; wiseale does not guess"
            )


def _in_column(names: tuple[str, ...], place: list[int]) -> str:
    """`` in column "mass"`` of a table, by its number from 1 where it has no name; empty for signals and images."""
    if len(place) > 1:
        return ""
    return f' in column "{names[place[0]]}"' if names else f" in column {place[0] + 1}"


def _missing_error(x: Array, names: tuple[str, ...], advice: str) -> ValueError:
    """That the first missing cell of x is in the way, in one line; columns without a name are counted from 1."""
    rows = next(rows for rows in row_blocks(x) if np.isnan(x[rows]).any())
    row, *place = np.argwhere(np.isnan(x[rows]))[0].tolist()
    cell = f"a missing cell{_in_column(names, place)}" if x.ndim == 2 else "a missing value"
    return InvalidInputError(f"Input X contains NaN: row {rows.start + row + 1} (counted from 1) has {cell}; {advice}")
