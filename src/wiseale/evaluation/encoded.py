"""A trained model applied to rows, above all to unseen ones: computed once, shared by all measures and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wiseale.data import Rows
from wiseale.data.dataset import Array
from wiseale.data.defaults import check_values
from wiseale.models.inference import Codec
from wiseale.networks.model import Model
from wiseale.posterior import Posterior
from wiseale.randomness import generator
from wiseale.runs.rows import Split
from wiseale.runs.run import Run
from wiseale.spaces.units import interpret

MOST_ROWS = 10_000
BATCH = 512


@dataclass(frozen=True)
class Encoded:
    """A model, rows, and their posteriors.

    Attributes:
        codec: the model with the conversion of rows.
        rows: the rows as they are stored.
        posterior: q(z|x) of every row; without sigma where the encoder is deterministic.
        split: which rows these are: ``"test"``, ``"held out"``, ``"train"`` or ``"all rows"``.
        circular: period of each factor that wraps around.
        unseen: which rows the weights were not learned from, (n,); None where that is all of them.
    """

    codec: Codec
    rows: Rows
    posterior: Posterior
    split: str
    circular: Mapping[str, float] = field(default_factory=dict)
    unseen: npt.NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, codec: Codec, rows: Rows, split: str, circular: Mapping[str, float] | None = None) -> Encoded:
        """Encode every row."""
        parts = [codec.posterior(codec.read(rows.x[part], rows.reading)) for part in _blocks(len(rows))]
        sigmas = [part.sigma for part in parts if part.sigma is not None]
        posterior = Posterior(torch.cat([part.mu for part in parts]), torch.cat(sigmas) if sigmas else None)
        return cls(codec, rows, posterior, split, circular or {})

    @property
    def model(self) -> Model:
        """The model."""
        return self.codec.model

    @property
    def factors(self) -> Mapping[str, Array]:
        """What is known of each row, by name."""
        return self.rows.factors

    def read(self, rows: Tensor) -> Tensor:
        """The rows with these numbers in the network's units."""
        return self.codec.read(self.rows.x[rows.numpy()], self.rows.reading)

    def blocks(self) -> Iterator[tuple[Tensor, slice]]:
        """Blocks of x in the network's units, each with the slice of the rows it holds."""
        for part in _blocks(len(self.rows)):
            yield self.codec.read(self.rows.x[part], self.rows.reading), part

    def by_block(self, compute: Callable[[Tensor, slice], tuple[Tensor, ...]]) -> list[Tensor]:
        """What a function of every block (see :meth:`blocks`) returns, joined."""
        return [torch.cat(column) for column in zip(*(compute(x, part) for x, part in self.blocks()), strict=True)]


def encode_run(run: Run, split: Split = "unseen", most: int = MOST_ROWS) -> Encoded:
    """The run's model applied to rows of its data, or of other data that it was opened with."""
    codec, selection = run.fast_codec, run.rows(split, most)
    check_values(selection.rows, run.settings.likelihood)
    encoded = Encoded.of(codec, binarized(selection.rows, run.settings.seed), selection.split, run.dataset.circular)
    return replace(encoded, unseen=selection.unseen)


def binarized(rows: Rows, seed: int) -> Rows:
    """Rows of a set with dynamic binarisation, drawn once, so that every measure sees the same x; others unchanged."""
    if rows.reading != "dynamic":
        return rows
    draws = generator(seed, "binarize", 0)
    drawn = [interpret(rows.x[part], "dynamic", draws) for part in _blocks(len(rows))]
    return Rows(torch.cat(drawn).to(torch.uint8).numpy(), "values", rows.factors)


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, BATCH):
        yield slice(start, min(start + BATCH, n))
