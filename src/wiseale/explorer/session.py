"""What the page shows: the rows, their posteriors under each run, and the models that decode."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wiseale.data.dataset import Array
from wiseale.errors import DataError
from wiseale.explorer.contours import Contours, Plane, density_contours, principal_plane
from wiseale.explorer.observation import Colouring, Observation, Values, colourings, shown_columns
from wiseale.explorer.opening import Opened, ShownRows
from wiseale.explorer.own_rows import read_own_rows
from wiseale.models.inference import Codec, Codes
from wiseale.randomness import generator
from wiseale.runs.run import evenly_spaced
from wiseale.spaces import TableSpace
from wiseale.spaces.units import as_x
from wiseale.training.plan import torch_threads

MOST_CODES = 256
"""Codes decoded at once."""

PRIOR_DRAWS = 240
THUMBNAILS = 1200
LARGEST_CODE = 1e6

_OWN_PRIOR_DRAWS = 40_000


@dataclass(frozen=True)
class OwnRows:
    """Dropped rows under one run: x and x_hat in the user's units, of tables their entries, and the posteriors."""

    x: Values
    x_hat: Values
    codes: Codes
    available: int


@dataclass(frozen=True)
class ShownRun:
    """One model applied to the rows."""

    opened: Opened
    codes: Codes
    principal: Plane | None  # None where codes have one dimension
    _contours: dict[str, Contours] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def codec(self) -> Codec:
        """The model with the conversion of rows."""
        return self.opened.codec

    @property
    def latent_dim(self) -> int:
        """d_z."""
        return self.codec.model.latent_dim

    def decode(self, z: Values) -> Values:
        """E[x|z] in the user's units for codes (n, d_z), of a table its entries; codes too far away are refused."""
        if z.ndim != 2 or z.shape[1] != self.latent_dim or len(z) == 0:
            raise DataError(f"codes of this model have {self.latent_dim} numbers each")
        if len(z) > MOST_CODES:
            raise DataError(f"{len(z):,} codes in one request: at most {MOST_CODES} are decoded at once")
        if not np.isfinite(z).all():
            raise DataError("a code holds a number that is not finite")
        if np.abs(z).max() > LARGEST_CODE:
            raise DataError(f"a code lies beyond ±{LARGEST_CODE:g}, far outside the prior: move closer to 0")
        with self._lock, torch_threads(1):  # so little work that a second thread is only waited for
            x_hat = self.codec.expected(z).astype(np.float32)
        if not np.isfinite(x_hat).all():
            raise DataError("the decoder's answer to this code is not finite")
        return x_hat

    def plane(self, axes: str) -> Plane:
        """The plane named ``"pca"`` or ``"0,1"``."""
        if axes == "pca" and self.principal is not None:
            return self.principal
        units = axes.split(",")
        if len(units) != 2 or not all(u.isascii() and u.isdigit() and int(u) < self.latent_dim for u in units):
            raise DataError(f"axes are two of the {self.latent_dim} latent units, such as 0,1, or pca")
        return Plane.of_units(int(units[0]), int(units[1]), self.latent_dim)

    def contours(self, axes: str) -> Contours:
        """Contours of the aggregate in a plane, and of the prior where it is not N(0, I); computed once."""
        plane = self.plane(axes)
        with self._lock:
            if axes not in self._contours:
                aggregate = density_contours(plane, self.codes.mu, self.codes.sigma)
                own = self.codec.model.prior is not None
                prior = density_contours(plane, self.draw_prior(_OWN_PRIOR_DRAWS), None) if own else None
                self._contours[axes] = Contours(aggregate, prior)
            return self._contours[axes]

    def own_rows(self, content: bytes, suffix: str) -> OwnRows:
        """Encode and reconstruct the rows of a dropped file."""
        stored, available = read_own_rows(self.codec, content, suffix)
        with self._lock, torch_threads(1):
            codes = self.codec.encode(stored, error=True)
            x_hat = self.codec.expected(codes.mu).astype(np.float32)
        if not (np.isfinite(codes.mu).all() and np.isfinite(x_hat).all()):
            raise DataError("the model's answer to these rows is not finite: are they in the units of its data?")
        return OwnRows(_in_user_units(self.codec, stored), x_hat, codes, available)

    def draw_prior(self, n: int = PRIOR_DRAWS) -> Values:
        """Codes of the model's prior, (n, d_z)."""
        return self.codec.model.sample_prior(n, generator(0, "sample", 0)).cpu().numpy().astype(np.float32)


@dataclass(frozen=True)
class Session:
    """The rows, and every run applied to them."""

    shown: ShownRows
    runs: tuple[ShownRun, ...]

    @property
    def codec(self) -> Codec:
        """The first run's model, in whose units rows are drawn."""
        return self.runs[0].codec

    @cached_property
    def observation(self) -> Observation:
        """How an x is drawn; ranges are those of at most 1,000 rows."""
        columns = shown_columns(self.codec.space, self.shown.columns)
        return Observation.of(self.x(evenly_spaced(len(self.shown.rows), 1000)), columns)

    @cached_property
    def colourings(self) -> tuple[Colouring, ...]:
        """What points can be coloured by, beside each run's reconstruction error."""
        return tuple(colourings(self.shown, self.observation.columns))

    @cached_property
    def thumbnail_rows(self) -> npt.NDArray[np.int64]:
        """The rows that have small pictures; none for tables, and none where only codes are stored."""
        none = self.observation.kind == "table" or self.shown.codes
        return evenly_spaced(len(self.shown.rows), 0 if none else THUMBNAILS)

    def thumbnails(self) -> npt.NDArray[np.uint8]:
        """Small pictures of :attr:`thumbnail_rows`."""
        return self.observation.thumbnails(self.x(self.thumbnail_rows))

    def x(self, rows: npt.NDArray[np.int64]) -> Values:
        """Shown rows in the user's units, (n, *x_shape); of a table their entries.

        Where only codes are at hand, the first run's reconstructions: they give ranges, and are not shown as originals.
        """
        if self.shown.codes:
            return self.codec.decode(self.runs[0].codes.mu[rows]).astype(np.float32)
        return _in_user_units(self.codec, self.shown.rows.x[rows])


Progress = Callable[[int, int | None], None]


def make_session(models: Sequence[Opened], shown: ShownRows, progress: Progress | None = None) -> Session:
    """Encode the rows under each model, unless their codes are stored."""
    runs, n = [], len(shown.rows)
    for number, model in enumerate(models):
        parts = [shown.codes[number]] if shown.codes else []
        for block in model.codec.blocks(0 if shown.codes else n):
            parts.append(model.codec.encode(shown.rows.x[block], error=True))
            if progress is not None:
                progress(number * n + block.stop, len(models) * n)
        mu, sigma, error = (_joined([getattr(part, name) for part in parts]) for name in ("mu", "sigma", "error"))
        if mu is None or not np.isfinite(mu).all():
            raise DataError("the model's codes of these rows are not finite: are they in the units of its data?")
        runs.append(ShownRun(model, Codes(mu, sigma, error), principal_plane(mu) if mu.shape[1] > 1 else None))
    return Session(shown, tuple(runs))


def _joined(parts: Sequence[Array | None]) -> Values | None:
    arrays = [part for part in parts if part is not None]
    return np.concatenate(arrays).astype(np.float32) if arrays else None


def _in_user_units(codec: Codec, stored: Array) -> Values:
    if isinstance(codec.space, TableSpace):
        return codec.space.expand(stored).astype(np.float32)
    return as_x(np.asarray(stored), codec.space.reading).numpy().astype(np.float32)
