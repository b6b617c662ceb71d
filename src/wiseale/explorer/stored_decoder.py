"""Decoded codes stored in a page that cannot run the network: on a grid for d_z ≤ 2, else those of some rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wiseale.explorer.observation import Observation, Values
from wiseale.explorer.session import MOST_CODES, ShownRun

_BUDGET = 3_000_000  # bytes, before compression
_FINEST_GRID = 32
_MOST_ROWS = 600


@dataclass(frozen=True)
class PageDecoder:
    """What a page needs to decode codes of one run: a description as JSON, numbers in bulk, and a note for readers."""

    description: dict[str, Any]
    content: bytes
    note: str


def stored_decoder(run: ShownRun, observation: Observation) -> PageDecoder:
    """Decode as many codes as fit the budget."""
    width = 4 if observation.kind == "table" else 1  # images and signals are stored in 8 bits a value
    most = _BUDGET // (width * observation.size)
    if run.latent_dim <= 2:
        points = max(4, min(_FINEST_GRID, int(most ** (1 / run.latent_dim))))
        return _grid(run, observation, points)
    return _rows(run, observation, max(16, min(_MOST_ROWS, most, len(run.codes.mu))))


def _grid(run: ShownRun, observation: Observation, points: int) -> PageDecoder:
    mu, dims = run.codes.mu, run.latent_dim
    low = np.minimum(np.quantile(mu, 0.002, axis=0), -3.2)
    high = np.maximum(np.quantile(mu, 0.998, axis=0), 3.2)
    axes = [np.linspace(a, b, points) for a, b in zip(low, high, strict=True)]
    mesh = np.meshgrid(*axes)  # the first unit runs fastest
    codes = np.stack([part.ravel() for part in mesh], axis=1).astype(np.float32)
    description = {
        "kind": "grid",
        "from": low.tolist(),
        "to": high.tolist(),
        "points": points,
        "dims": dims,
        "codes": 0,
    }
    size = " × ".join([str(points)] * dims)
    note = f"Interpolated between {size} stored decodes: this file does not hold the network."
    return _packed(run, observation, codes, description, b"", note)


def _rows(run: ShownRun, observation: Observation, n: int) -> PageDecoder:
    rows = np.linspace(0, len(run.codes.mu) - 1, n).astype(int)
    codes = np.ascontiguousarray(run.codes.mu[rows], np.float32)
    description = {"kind": "nearest", "dims": run.latent_dim, "codes": codes.size}
    note = f"The nearest of {n:,} stored decodes: this file does not hold the network."
    return _packed(run, observation, codes, description, codes.astype("<f4").tobytes(), note)


def _packed(
    run: ShownRun, observation: Observation, codes: Values, description: dict[str, Any], before: bytes, note: str
) -> PageDecoder:
    parts = [run.decode(codes[start : start + MOST_CODES]) for start in range(0, len(codes), MOST_CODES)]
    x = np.concatenate(parts)
    if observation.kind == "table":
        return PageDecoder(
            description | {"size": observation.size, "low": 0, "high": 1, "float": True},
            before + x.astype("<f4").tobytes(),
            note,
        )
    low, high = float(x.min()), float(x.max())
    scaled = (x - low) / max(high - low, 1e-12)
    described = description | {"size": observation.size, "low": low, "high": high, "float": False}
    return PageDecoder(described, before + np.rint(scaled * 255).astype(np.uint8).tobytes(), note)
