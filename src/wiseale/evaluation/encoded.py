"""A trained model applied to rows, above all to unseen ones: computed once, shared by all measures and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wiseale import config
from wiseale.config import TrainConfig
from wiseale.data import Dataset, Rows, load_dataset
from wiseale.data.dataset import Array
from wiseale.data.defaults import check_values, make_dataset
from wiseale.data.source import read_alike
from wiseale.data.stream import open_rows
from wiseale.errors import DataError, RunError
from wiseale.models.inference import Codec
from wiseale.models.model_file import load_model
from wiseale.networks.model import Model
from wiseale.posterior import PointPosterior, Posterior
from wiseale.processes.shared_tasks import Result, Task, results
from wiseale.randomness import generator
from wiseale.runs.directory import RunDirectory
from wiseale.spaces import TableSpace
from wiseale.spaces.reading import interpret
from wiseale.training.split import split_rows

MOST_ROWS = 10_000
BATCH = 512


@dataclass(frozen=True)
class Encoded:
    """A model, rows, and their posteriors.

    Attributes:
        codec: the model with the conversion of rows.
        rows: the rows as they are stored.
        posterior: q(z|x) of every row; a :class:`~wiseale.posterior.PointPosterior` where the encoder is deterministic.
        split: which rows these are: ``"test"``, ``"held out"`` or ``"all rows"``.
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
        """Encode every row; ranks take blocks of rows."""
        stochastic = codec.model.stochastic

        def encode(part: slice) -> Result:
            found = codec.posterior(codec.read(rows.x[part], rows.reading))
            return (found.mu, found.sigma) if stochastic else (found.mu,)

        parts = results([Task(partial(encode, part)) for part in _blocks(len(rows))])
        columns = [torch.cat(column) for column in zip(*parts, strict=True)]
        posterior = Posterior(*columns) if stochastic else PointPosterior(*columns)
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

    def by_block(self, compute: Callable[[Tensor, slice], Result]) -> list[Tensor]:
        """What a function of every block (see :meth:`blocks`) returns, joined; ranks take blocks in turn."""

        def of_block(part: slice) -> Result:
            return compute(self.codec.read(self.rows.x[part], self.rows.reading), part)

        parts = results([Task(partial(of_block, part)) for part in _blocks(len(self.rows))])
        return [torch.cat(column) for column in zip(*parts, strict=True)]


@dataclass(frozen=True)
class OpenRun:
    """A finished run's model and its data, or other data to apply it to (``other``)."""

    codec: Codec
    dataset: Dataset
    settings: TrainConfig
    other: bool = False

    def unseen(self, most: int = MOST_ROWS) -> Encoded:
        """The dataset's test rows, the held-out rows where it has none, or all rows of other data.

        Of more than ``most``, evenly spaced ones.
        """
        rows, split = _unseen(self.dataset, self.settings, self.other)
        return self._encoded(rows.take(_evenly_spaced(len(rows), most)), split)

    def all_rows(self, most: int = MOST_ROWS) -> Encoded:
        """All rows, test rows last, marked by whether they were learned from; of more than ``most``, evenly spaced."""
        train, test = self.dataset.train, self.dataset.test
        n = len(train) + (len(test) if test else 0)
        chosen = _evenly_spaced(n, most)
        rows = train.take(chosen[chosen < len(train)])
        if test is not None:
            more = test.take(chosen[chosen >= len(train)] - len(train))
            factors = {
                name: np.concatenate([values, more.factors[name]])
                for name, values in rows.factors.items()
                if name in more.factors
            }
            rows = Rows(np.concatenate([rows.x, more.x]), rows.reading, factors)
        if self.other:
            return self._encoded(rows, "all rows")
        held_out = split_rows(len(train), self.settings).held_out
        unseen = (chosen >= len(train)) | np.isin(chosen, held_out)
        return replace(self._encoded(rows, "all rows"), unseen=unseen)

    def _encoded(self, rows: Rows, split: str) -> Encoded:
        check_values(rows, config.build("likelihood", self.codec.model_config.likelihood))
        return Encoded.of(self.codec, binarized(rows, self.settings.seed), split, self.dataset.circular)


def open_run(path: Path, data: str | None = None, dataset: Dataset | None = None) -> OpenRun:
    """A finished run with its own data, which must not have changed, or with other data of the same shape.

    ``dataset`` is the run's own data, where it is in memory already.
    """
    run = RunDirectory.open(path)
    if not run.finished:
        raise RunError(f"{path} has not finished: continue it with `wiseale resume {path}` first")
    record = run.read_record()
    settings = record.settings
    root = Path(settings.data_root) if settings.data_root else None
    codec = Codec(*load_model(run.model), exact=False)
    if data is not None:
        dataset = read_other(codec, data, settings, root)
    dataset = dataset or load_dataset(settings.data, root)
    if dataset.x_shape != codec.model.x_shape:
        shapes = f"has rows of shape {dataset.x_shape}, the model takes {codec.model.x_shape}"
        raise DataError(f"{data or settings.data} {shapes}")
    if data is None and dataset.fingerprint != record.facts.data_fingerprint:
        raise DataError(f"{settings.data} has changed since the run was made: give the data to use with --data")
    return OpenRun(codec, dataset, settings, other=data is not None)


def encode_run(path: Path, data: str | None = None, most: int = MOST_ROWS) -> Encoded:
    """The run's model applied to its dataset's test rows, to its held-out rows where it has none, or to other data."""
    return open_run(path, data).unseen(most)


def read_other(codec: Codec, data: str, settings: TrainConfig, root: Path | None) -> Dataset:
    """Data that is not the run's own, read as that was, with the columns that the model knows."""
    spec = read_alike(data, settings.data)
    if codec.space.missing:
        return read_as_cells(codec, spec)
    dataset = load_dataset(spec, root, columns=codec.space.names)
    if dataset.space.missing:
        raise DataError(
            f"{data} has words or missing cells, and the model was trained on numbers alone: drop such rows"
        )
    return dataset


def read_as_cells(codec: Codec, data: str) -> Dataset:
    """Other data as cells under the model's own kinds and levels."""
    assert isinstance(codec.space, TableSpace)
    blocks = open_rows(data, space=codec.space).blocks()
    return make_dataset(np.concatenate(list(blocks)), data, cells=codec.space)


def binarized(rows: Rows, seed: int) -> Rows:
    """Rows of a set with dynamic binarisation, drawn once, so that every measure sees the same x; others unchanged."""
    if rows.reading != "dynamic":
        return rows
    draws = generator(seed, "binarize", 0)
    drawn = [interpret(rows.x[part], "dynamic", draws) for part in _blocks(len(rows))]
    return Rows(torch.cat(drawn).to(torch.uint8).numpy(), "values", rows.factors)


def _evenly_spaced(n: int, most: int) -> npt.NDArray[np.int64]:
    """Positions of all of n rows, or of ``most`` from the first to the last: rows of a file may be sorted."""
    return np.linspace(0, n - 1, min(most, n)).astype(np.int64)


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, BATCH):
        yield slice(start, min(start + BATCH, n))


def _unseen(dataset: Dataset, settings: TrainConfig, other: bool) -> tuple[Rows, str]:
    if dataset.test is not None:
        return dataset.test, "test"
    if other:
        return dataset.train, "all rows"
    held_out = split_rows(len(dataset.train), settings).held_out
    if len(held_out) == 0:
        raise DataError("the run held nothing out and its data has no test rows: give some with --data")
    return dataset.train.take(held_out), "held out"
