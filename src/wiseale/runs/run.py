"""A run as others read it: settings, history, the trained model, and the rows that it learned from or did not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from wiseale.data import Dataset, Rows, load_dataset
from wiseale.data.dataset import Progress
from wiseale.data.defaults import make_dataset
from wiseale.data.source import open_rows, read_alike
from wiseale.errors import DataError, RunError
from wiseale.models.inference import Codec
from wiseale.models.model_file import load_model
from wiseale.runs.directory import RunDirectory
from wiseale.runs.notebook import TERMS, curves_svg, table_html
from wiseale.runs.record import RunRecord
from wiseale.spaces import TableSpace
from wiseale.training.batches import Indices, split_rows
from wiseale.training.loop import EpochRecord
from wiseale.training.settings import RunFacts, RunSettings

Split = Literal["unseen", "test", "held out", "train", "all rows"]
"""Rows of a run: ``"unseen"`` are the test rows, or the held-out ones where there are none, or all rows of other data;
``"train"`` those learned from; ``"all rows"`` all of the data, test rows last."""


@dataclass(frozen=True)
class SelectedRows:
    """Some rows of a dataset, out of ``available`` ones.

    ``numbers``, (n,), are counted from 0 in the split's own file; those of test rows that follow training rows are
    counted on. ``unseen``, (n,), says which a run did not learn from; None where that is all of them.
    """

    rows: Rows
    split: Split
    numbers: Indices
    available: int
    unseen: npt.NDArray[np.bool_] | None = None


def select(dataset: Dataset, split: Split, held_out: Indices | None, most: int | None = None) -> SelectedRows:
    """The rows of a split; of more than ``most``, evenly spaced ones, because rows of a file may be sorted.

    ``held_out`` are the numbers of the training rows that a run held out; None where the dataset is not that of a run.
    """
    train, test = dataset.train, dataset.test
    if split == "unseen":
        split = "test" if test is not None else "all rows" if held_out is None else "held out"
    if split == "test":
        if test is None:
            raise DataError(f"{dataset.name} has no test rows")
        numbers = evenly_spaced(len(test), most)
        return SelectedRows(test.take(numbers), split, numbers, len(test))
    if split == "all rows":
        n = len(train) + (len(test) if test is not None else 0)
        numbers = evenly_spaced(n, most)
        unseen = None if held_out is None else (numbers >= len(train)) | np.isin(numbers, held_out)
        return SelectedRows(_take_both(train, test, numbers), split, numbers, n, unseen)
    if held_out is None:
        raise DataError(f"{dataset.name} is not the data of the run: it has no {split} rows")
    numbers = held_out if split == "held out" else np.setdiff1d(np.arange(len(train)), held_out, assume_unique=True)
    if len(numbers) == 0:
        raise DataError("the run held nothing out and its data has no test rows: give some with --data")
    available, numbers = len(numbers), numbers[evenly_spaced(len(numbers), most)]
    seen = np.zeros(len(numbers), bool) if split == "train" else None
    return SelectedRows(train.take(numbers), split, numbers, available, seen)


def evenly_spaced(n: int, most: int | None) -> Indices:
    """Positions of all of n rows, or of ``most`` from the first to the last.

    >>> evenly_spaced(5, 3), evenly_spaced(3, None)
    (array([0, 2, 4]), array([0, 1, 2]))
    """
    return np.linspace(0, n - 1, n if most is None else min(most, n)).astype(np.int64)


def _take_both(train: Rows, test: Rows | None, numbers: Indices) -> Rows:
    """Training rows, then test rows, whose numbers go on where those of the training rows end."""
    rows = train.take(numbers[numbers < len(train)])
    if test is None:
        return rows
    more = test.take(numbers[numbers >= len(train)] - len(train))
    names = rows.factors.keys() & more.factors.keys()
    factors = {name: np.concatenate([rows.factors[name], more.factors[name]]) for name in rows.factors if name in names}
    return Rows(np.concatenate([rows.x, more.x]), rows.reading, factors)


def read_other(
    codec: Codec, data: str, before: str = "", root: Path | None = None, progress: Progress | None = None
) -> Dataset:
    """Data for a trained model, with the columns that it knows; a file is read as that of ``before`` was.

    ``before`` is the data it was trained on, empty where that is not known.
    """
    spec = read_alike(data, before)
    if isinstance(codec.space, TableSpace) and codec.space.missing:
        blocks = open_rows(spec, space=codec.space).blocks()
        dataset = make_dataset(np.concatenate(list(blocks)), spec, cells=codec.space)
    else:
        dataset = load_dataset(spec, root, progress, columns=codec.space.names)
        if dataset.space.missing:
            raise DataError(
                f"{data} has words or missing cells, and the model was trained on numbers alone: drop such rows"
            )
    _require_shape(codec, dataset, data)
    return dataset


def _require_shape(codec: Codec, dataset: Dataset, name: str) -> None:
    """An error where the model takes rows of another shape."""
    if dataset.x_shape != codec.model.x_shape:
        raise DataError(f"{name} has rows of shape {dataset.x_shape}, the model takes {codec.model.x_shape}")


class Run(RunDirectory):
    """A run directory, opened; what is in it is read when it is asked for.

    ::

        run = Run.open(Path("runs/first"))
        run.settings.lr, run.facts.prior_weight, run.history[-1].train["loss"]
        codes = run.codec().encode(run.rows("held out").rows.x)

    ``data`` is other data to apply the model to, in place of the run's own.
    """

    def __init__(self, path: Path, data: str | None = None, dataset: Dataset | None = None) -> None:
        super().__init__(path)
        self.data = data
        self._dataset = dataset

    @classmethod
    def open(cls, path: Path, data: str | None = None, dataset: Dataset | None = None) -> Run:
        """The run at this path; ``dataset`` is its own data, where that is in memory already."""
        return cls(RunDirectory.open(path).path, data, dataset)

    @cached_property
    def record(self) -> RunRecord:
        """The settings and the facts."""
        return self.read_record()

    @property
    def settings(self) -> RunSettings:
        """What it is made from."""
        return self.record.settings

    @property
    def facts(self) -> RunFacts:
        """What follows from the settings and the data."""
        return self.record.facts

    @property
    def history(self) -> list[EpochRecord]:
        """The terms of each epoch so far."""
        return self.read_metrics()

    def codec(self, *, exact: bool = True) -> Codec:
        """The trained model, for rows; ``exact=False`` computes tables in float32, enough for means over many rows."""
        if not self.finished:
            raise RunError(f"{self.path} has not finished: continue it with `wiseale resume {self.path}` first")
        return Codec(*load_model(self.model), exact=exact)

    @cached_property
    def fast_codec(self) -> Codec:
        """The trained model in float32, for measures and pictures."""
        return self.codec(exact=False)

    @property
    def dataset(self) -> Dataset:
        """The run's own data, which must not have changed, or the other data."""
        return self._dataset if self._dataset is not None else self.load()

    def load(self, root: Path | None = None, progress: Progress | None = None) -> Dataset:
        """The data, read from another folder of datasets than the run's or with a display of the progress."""
        codec, own, root = self.fast_codec, self.settings.data, root or Path(self.settings.data_root)
        if self.data is not None:
            dataset = read_other(codec, self.data, own, root, progress)
        else:
            dataset = load_dataset(own, root, progress)
            _require_shape(codec, dataset, own)
            if self.held_out_of(dataset) is None:
                raise DataError(f"{own} has changed since the run was made: give the data to use with --data")
        self._dataset = dataset
        return dataset

    def rows(self, split: Split = "unseen", most: int | None = None) -> SelectedRows:
        """Rows of the data; of more than ``most``, evenly spaced ones."""
        held_out = None if self.data is not None else self.held_out_of(self.dataset)
        return select(self.dataset, split, held_out, most)

    def held_out_of(self, dataset: Dataset) -> Indices | None:
        """The numbers of the training rows that the run held out; None where the dataset is not that of the run."""
        if dataset.fingerprint != self.facts.data_fingerprint:
            return None
        settings = self.settings
        return split_rows(len(dataset.train), settings.held_out, settings.held_out_most, settings.seed).held_out

    def _repr_html_(self) -> str:
        """The run in a notebook: its settings, and the curves of its terms so far."""
        values, metrics = self.settings.to_values(), self.history
        names = ("data", "objective", "network", "likelihood", "latent_dim", "batch_size", "lr", "seed")
        facts = {name: str(values[name]) for name in names}
        state = "finished" if self.finished else "not finished"
        facts["epochs"] = f"{len(metrics)} of at most {self.settings.max_epochs}, {state}"
        curves = {
            term: {
                "train": [(epoch.epoch, epoch.train[term]) for epoch in metrics if term in epoch.train],
                "held out": [(e.epoch, e.held_out[term]) for e in metrics if e.held_out and term in e.held_out],
            }
            for term in TERMS
        }
        return table_html(f"Run {self.path}", facts) + curves_svg(curves)
