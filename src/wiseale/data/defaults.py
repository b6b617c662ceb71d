"""Defaults for people's own data, for files and arrays alike: reading, likelihood, scaling, network, length."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from wiseale import config
from wiseale.data.dataset import Array, Dataset, Preset, Rows, fingerprint, row_blocks
from wiseale.errors import ConfigError, counted
from wiseale.spaces import Column, MixedSpace, NumbersSpace, Reading, Scaling, Space, TableSpace, plain_space
from wiseale.spaces.columns import quote_name

if TYPE_CHECKING:  # likelihoods import torch, which finding out whether a path can be read does not need
    from wiseale.likelihoods import LikelihoodSettings

HELD_OUT = 0.1
"""Part of the rows of people's own data that is not learned from but watched for early stopping."""

PATIENCE_STEPS = 800
"""Optimiser steps without a better held-out loss after which training ends."""

PATIENCE_EPOCHS = 5
"""Epochs without a better held-out loss that training waits at least, so that large sets are not left half-trained."""

WATCH_STEPS = 20
"""Optimiser steps between two measurements of the held-out loss, where an epoch is shorter."""

UNWATCHED_STEPS = 3_000
"""Optimiser steps to train for where no held-out loss says when to stop."""

MOST_STEPS = 30_000
"""Optimiser steps after which training ends at the latest, rounded up to whole epochs."""

_NETWORK = "mlp"  # as good as convolutions on the sets measured, and several times faster: docs/defaults.md
_LISTED = 5  # constant columns named in the description


def make_dataset(
    x: Array,
    name: str,
    *,
    factors: Mapping[str, Array] | None = None,
    columns: tuple[str, ...] = (),
    scaling: Scaling | None = None,
    sha256: str | None = None,
    cells: TableSpace | None = None,
    ignored: tuple[tuple[str, str], ...] = (),
) -> Dataset:
    """A dataset of checked observations, all of them training rows, with default settings.

    ========================  ==========  ==========  ====================
    values                    reading     likelihood  scaling
    ========================  ==========  ==========  ====================
    0 and 1 (also bool)       values      bernoulli   none
    uint8 images of 0, 255    unit        bernoulli   none
    other uint8 images        unit        gaussian    global
    other tables              values      gaussian    columns
    other signals, images     values      gaussian    global
    columns with kinds        values      table       columns
    ========================  ==========  ==========  ====================

    Constant columns are kept: standardising divides them by 1.

    Args:
        x: (n, features), (n, channels, length) or (n, channels, height, width), float32 or float64; images also uint8.
        name: what the user calls it.
        factors: labels of the rows, by name, each (n,).
        columns: names of the features.
        scaling: said by the user; by default it follows the likelihood, see :func:`suit`.
        sha256: fingerprint of the content where it is known already.
        cells: what x holds, where its columns have kinds or types.
        ignored: name of each column that is not learned from, and why, where ``cells`` does not say it.
    """
    mixed = isinstance(cells, MixedSpace)
    if mixed and scaling == "global":
        raise ConfigError("standardize=global needs columns of numbers alone: say columns or none")
    reading: Reading = "unit" if x.dtype == np.uint8 and not _holds_only(x, 0, 1) else "values"
    binary = not mixed and _holds_only(x, 0, 255 if reading == "unit" else 1)
    space: Space = cells or plain_space(x.shape[1:], reading)
    if cells is None and isinstance(space, NumbersSpace):
        space = replace(space, columns=tuple(map(Column, columns)), ignored=ignored)
    preset = Preset(
        network=_NETWORK,
        likelihood=space.likelihood(binary=binary),
        latent_dim=min(8, max(1, math.prod(x.shape[1:]) // 2)),
        batch_size=min(64, len(x)),
        max_epochs=None,
        lr=5e-4,
        held_out=HELD_OUT,
    )
    # The kinds and levels of cells give them their meaning.
    meaning = (np.frombuffer(space.meaning.encode(), np.uint8),) if isinstance(space, MixedSpace) else ()
    return Dataset(
        name=name,
        train=Rows(x, reading, dict(factors or {})),
        test=None,
        preset=preset,
        fingerprint=sha256 or fingerprint(x, *meaning),
        space=replace(space, scaling=scaling or _default_scaling(space, config.build("likelihood", preset.likelihood))),
        scaling_follows_likelihood=scaling is None,
    )


def suit(dataset: Dataset, likelihood: str) -> Dataset:
    """The dataset as this likelihood learns from it.

    Unless the user chose the scaling, people's own data is standardised where the likelihood allows it. Values outside
    the likelihood's support are refused, and so are scaling and rows that it does not allow.
    """
    settings: LikelihoodSettings = config.build("likelihood", likelihood)
    settings.require(dataset.space)
    scaling = dataset.space.scaling
    if dataset.scaling_follows_likelihood:
        scaling = _default_scaling(dataset.space, settings)
    if scaling != "none" and not settings.standardizes:
        raise ConfigError(f"standardize={scaling} needs another likelihood than {likelihood}: say gaussian")
    if scaling == "none":
        check_values(dataset.train, settings)
    return replace(dataset, space=replace(dataset.space, scaling=scaling))


def check_values(rows: Rows, likelihood: LikelihoodSettings) -> None:
    """Refuse rows with values outside the likelihood's support; 8-bit readings are between 0 and 1 anyway."""
    if rows.reading != "values" or likelihood.support == (-math.inf, math.inf):
        return
    blocks = (rows.x[part] for part in row_blocks(rows.x))
    extremes = [(float(block.min()), float(block.max())) for block in blocks]
    likelihood.check_support(min(low for low, _ in extremes), max(high for _, high in extremes))


@dataclass(frozen=True)
class Length:
    """How long to train, in epochs.

    Attributes:
        max_epochs: at the most.
        patience: to wait for a better held-out loss; None: no early stopping.
        watch_every: between two measurements of the held-out loss.
    """

    max_epochs: int
    patience: int | None
    watch_every: int


def choose_length(
    max_epochs: int | None, patience: int | Literal["auto"] | None, steps_per_epoch: int, *, watched: bool
) -> Length:
    """The length of training in whole epochs, for what the user leaves open.

    With neither ``max_epochs`` nor a patience given, training ends once :data:`PATIENCE_STEPS` steps, and at least
    :data:`PATIENCE_EPOCHS`, have brought nothing better, and after :data:`MOST_STEPS` at the latest; the held-out loss
    is measured every :data:`WATCH_STEPS` steps, or after every epoch if that is longer. Where early stopping is off, or
    nothing is held out to watch, it lasts :data:`UNWATCHED_STEPS`. If ``max_epochs`` is given and the patience is not,
    it lasts that long.

    >>> choose_length(None, "auto", 100, watched=True)
    Length(max_epochs=300, patience=8, watch_every=1)
    >>> choose_length(20, "auto", 100, watched=True)
    Length(max_epochs=20, patience=None, watch_every=1)
    """

    def epochs(steps: int) -> int:
        return math.ceil(steps / steps_per_epoch)

    watch_every = 1
    if patience == "auto":
        automatic = watched and max_epochs is None
        patience = max(epochs(PATIENCE_STEPS), PATIENCE_EPOCHS) if automatic else None
        watch_every = max(1, WATCH_STEPS // steps_per_epoch) if automatic else 1
    if max_epochs is None:
        max_epochs = epochs(UNWATCHED_STEPS if patience is None else MOST_STEPS)
    return Length(max_epochs, patience, watch_every)


def describe(dataset: Dataset) -> str:
    """What people's own data was taken for and what was chosen for it, in one line."""
    preset, space = dataset.preset, dataset.space
    form = space.describe()
    if space.missing:
        holes = int(sum(np.isnan(dataset.train.x[part]).sum() for part in row_blocks(dataset.train.x)))
        form += f"; {counted(holes, 'missing cell')}"
    scaling = {"none": "not standardised", "columns": "standardised by column", "global": "standardised as a whole"}
    if constant := constant_columns(dataset):
        form += f" ({constant})"
    return (
        f"{counted(len(dataset.train), 'row')}, {form}{_labels(dataset)}; network {preset.network}, "
        f"likelihood {preset.likelihood}, latent dimension {preset.latent_dim}, {scaling[space.scaling]}"
    )


def describe_columns(dataset: Dataset) -> str:
    """What the named columns of a table were taken for and what was left out, in one line; empty for other data."""
    columns = dataset.space.describe_columns() if isinstance(dataset.space, TableSpace) else ""
    return columns and columns + _labels(dataset)


def _labels(dataset: Dataset) -> str:
    """``; label: species`` of a table that has labels."""
    names = [quote_name(name) for name in dataset.train.factors] if dataset.space.names else []
    return f"; label{'s' * (len(names) > 1)}: {', '.join(names)}" if names else ""


def constant_columns(dataset: Dataset) -> str:
    """The columns of a table with one value only: ``1 constant column: year``; empty where there are none."""
    x = dataset.train.x
    if x.ndim != 2:
        return ""
    constant = np.ones(x.shape[1], bool)
    for part in row_blocks(x):
        constant &= (x[part] == x[0]).all(axis=0)
        if not constant.any():
            return ""
    places, columns = np.flatnonzero(constant), dataset.space.names
    names = ", ".join(quote_name(columns[i]) if columns else str(i) for i in places[:_LISTED])
    rest = (", …" if len(places) > _LISTED else "") + ("" if columns else " (counted from 0)")
    return f"{counted(len(places), 'constant column')}: {names}{rest}"


def _default_scaling(space: Space, likelihood: LikelihoodSettings) -> Scaling:
    """Tables by columns, signals and images by one mean and scale, where the likelihood allows it."""
    return space.default_scaling if likelihood.standardizes else "none"


def _holds_only(x: Array, low: int, high: int) -> bool:
    """Whether every value is one of the two."""
    return all(bool(((x[rows] == low) | (x[rows] == high)).all()) for rows in row_blocks(x))
