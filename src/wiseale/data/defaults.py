"""Settings that suit people's own data, chosen from its shape and range, and said in one line."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from wiseale.data.dataset import Array, Dataset, Preset, Reading, Rows, Scaling
from wiseale.data.fingerprint import fingerprint
from wiseale.data.finite import row_blocks

_NETWORKS = {2: "mlp", 3: "conv1d", 4: "conv2d"}
_STEPS = 3000  # fewer steps than this seldom reach a useful model


def make_dataset(
    x: Array,
    name: str,
    *,
    factors: Mapping[str, Array] | None = None,
    columns: tuple[str, ...] = (),
    scaling: Scaling | None = None,
) -> Dataset:
    """A dataset of checked observations, all of them training rows, with default settings.

    Args:
        x: (n, features), (n, channels, length) or (n, channels, height, width): float32, or uint8 images.
        name: what the user calls it.
        factors: labels of the rows, by name, each (n,).
        columns: names of the features.
        scaling: how x is standardised; by default not at all if every value is 0 or 1, else a table by columns and
            signals and images as a whole.
    """
    reading = choose_reading(x)
    binary = holds_only(x, 0, 255 if reading == "unit" else 1)
    return Dataset(
        name=name,
        train=Rows(x, reading, dict(factors or {})),
        test=None,
        preset=choose_preset(x.shape, binary=binary),
        fingerprint=fingerprint(x),
        scaling=scaling or ("none" if binary else "columns" if x.ndim == 2 else "global"),
        columns=columns,
    )


def choose_reading(x: Array) -> Reading:
    """uint8 images go from 0 to 255 and are divided by 255, unless they hold nothing but 0 and 1."""
    return "unit" if x.dtype == np.uint8 and not holds_only(x, 0, 1) else "values"


def choose_preset(shape: tuple[int, ...], *, binary: bool) -> Preset:
    """Network by the number of axes, Bernoulli for zeros and ones, half as many codes as features and at most 8."""
    n, batch_size = shape[0], min(64, shape[0])
    return Preset(
        network=_NETWORKS[len(shape)],
        likelihood="bernoulli" if binary else "gaussian",
        latent_dim=min(8, max(1, math.prod(shape[1:]) // 2)),
        batch_size=batch_size,
        max_epochs=max(10, math.ceil(_STEPS / (n // batch_size))),
        lr=1e-3,
    )


def holds_only(x: Array, low: int, high: int) -> bool:
    """Whether every value is one of the two."""
    return all(bool(((x[rows] == low) | (x[rows] == high)).all()) for rows in row_blocks(x))


def describe(dataset: Dataset) -> str:
    """What people's own data was taken for and what was chosen for it, in one line, for the command line to say."""
    preset, shape = dataset.preset, dataset.x_shape
    form = _count(shape[0], "column" if len(shape) == 1 else "channel")
    if len(shape) == 2:
        form = f"signals of {form} and {_count(shape[1], 'sample')}"
    if len(shape) == 3:
        form = f"images of {form}, {shape[1]} by {shape[2]} pixels"
    scaling = {"none": "not standardised", "columns": "standardised by column", "global": "standardised as a whole"}
    return (
        f"{_count(len(dataset.train), 'row')}, {form}; network {preset.network}, likelihood {preset.likelihood}, "
        f"latent dimension {preset.latent_dim}, {scaling[dataset.scaling]}"
    )


def _count(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
