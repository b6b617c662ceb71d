"""The few arrays that the paper's figures are drawn from, small enough to be kept with the documentation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch

from wiseale.errors import RunError
from wiseale.evaluation.encoded import Encoded, encode_run
from wiseale.experiments import systems as s
from wiseale.experiments.comparison import Result
from wiseale.figures.decoded import Values
from wiseale.figures.decoded_pictures import drawable, spread_rows
from wiseale.figures.model_pictures import BATCH_SHOWN
from wiseale.runs.run import Run

SHOWN = (s.WAE_MMD_GAUSSIAN, s.WAE_MMD, s.WISE_ALE, s.WISE_ALE_AS_WRITTEN, s.AEVB, s.BETA_VAE)
_MOST_ROWS = 3000


@dataclass(frozen=True)
class SystemArrays:
    """One run: reconstructions of the shown rows, and posteriors of a batch (sigma: None if deterministic)."""

    x_hat: Values
    mu: Values
    sigma: Values | None


@dataclass(frozen=True)
class FigureArrays:
    """The shown rows x, and the arrays of each system's run with one seed under one condition, given by its key."""

    condition: str
    seed: int
    x: Values
    systems: Mapping[str, SystemArrays]

    def save(self, path: Path) -> None:
        """Write an .npz file: images as bytes, everything else in half precision."""
        arrays = {"condition": np.array(self.condition), "seed": np.array(self.seed), "x": _packed(self.x)}
        arrays["systems"] = np.array(list(self.systems))
        for number, one in enumerate(self.systems.values()):
            arrays[f"x_hat_{number}"] = _packed(one.x_hat)
            arrays[f"mu_{number}"] = one.mu.astype(np.float16)
            if one.sigma is not None:
                arrays[f"sigma_{number}"] = one.sigma.astype(np.float16)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: Path) -> Self:
        """What :meth:`save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                stored = dict(file)
            systems = {
                str(name): SystemArrays(
                    _unpacked(stored[f"x_hat_{number}"]),
                    stored[f"mu_{number}"].astype(np.float32),
                    stored[f"sigma_{number}"].astype(np.float32) if f"sigma_{number}" in stored else None,
                )
                for number, name in enumerate(stored["systems"])
            }
            return cls(str(stored["condition"]), int(stored["seed"]), _unpacked(stored["x"]), systems)
        except (OSError, ValueError, KeyError) as error:
            raise RunError(f"cannot read {path}: {error}") from None


@torch.no_grad()
def collect_arrays(
    results: Sequence[Result],
    condition: str,
    reconstructions: bool,
    inputs: bool = True,
    before: FigureArrays | None = None,
) -> FigureArrays | None:
    """The arrays of the shown systems' runs with the lowest seed; None where none of them has finished.

    Arrays collected ``before`` under the same condition fix the seed: its runs are added to them, or replace their own.
    Without ``reconstructions`` x and x_hat have length 0; without ``inputs`` x has, and no row of the data is kept.
    """
    names = [system.name for system in SHOWN]
    before = before if before is not None and before.condition == condition else None
    seeds = [result.seed for result in results if result.system.name in names]
    seed = before.seed if before else min(seeds, default=None)
    runs = {result.system.name: result for result in results if result.system.name in names and result.seed == seed}
    if seed is None or not runs:
        return before
    models = {name: encode_run(Run.open(runs[name].path), most=_MOST_ROWS) for name in names if name in runs}
    some = next(iter(models.values()))
    rows = spread_rows(some)[: None if reconstructions else 0]
    arrays = {}
    for name, one in models.items():
        x_hat = drawable(one, one.model.decode(one.posterior.mu[rows]).mean)
        arrays[name] = SystemArrays(x_hat, *_batch(one))
    together = {**before.systems, **arrays} if before else arrays
    in_order = {name: together[name] for name in names if name in together}
    x = drawable(some, some.read(rows))
    return FigureArrays(condition, seed, x if inputs else x[:0], in_order)


def _batch(one: Encoded) -> tuple[Values, Values | None]:
    mu: Values = one.posterior.mu[:BATCH_SHOWN].numpy()
    return mu, one.posterior.scale[:BATCH_SHOWN].numpy() if one.model.stochastic else None


def _packed(values: Values) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8 | np.float16]]:
    if values.ndim == 4:
        return np.asarray((values.clip(0, 1) * 255).round(), np.uint8)
    return values.astype(np.float16)


def _unpacked(stored: np.ndarray[tuple[int, ...], np.dtype[np.uint8 | np.float16]]) -> Values:
    values: Values = stored.astype(np.float32)
    return values / np.float32(255) if stored.dtype == np.uint8 else values
