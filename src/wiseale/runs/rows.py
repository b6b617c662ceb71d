"""Which rows of a dataset are meant by "held out", "test" or "unseen", and rows that are not a run's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from wiseale.data import Dataset, Rows, load_dataset
from wiseale.data.dataset import Progress
from wiseale.data.defaults import make_dataset
from wiseale.data.source import open_rows, read_alike
from wiseale.errors import DataError
from wiseale.models.inference import Codec
from wiseale.spaces import TableSpace

Indices = npt.NDArray[np.int64]

Split = Literal["unseen", "test", "held out", "train", "all rows"]
"""Rows of a run: ``"unseen"`` are the test rows, or the held-out ones where there are none, or all rows of other data;
``"train"`` those learned from; ``"all rows"`` all of the data, test rows last."""


@dataclass(frozen=True)
class Selection:
    """Some rows of a dataset.

    Attributes:
        rows: as they are stored.
        split: what they are.
        numbers: their numbers in the split's own file, counted from 0, (n,); those of test rows that follow training
            rows are counted on.
        available: how many rows they were taken from.
        unseen: which of them a run did not learn from, (n,); None where that is all of them.
    """

    rows: Rows
    split: Split
    numbers: Indices
    available: int
    unseen: npt.NDArray[np.bool_] | None = None


def select(dataset: Dataset, split: Split, held_out: Indices | None, most: int | None = None) -> Selection:
    """The rows of a split; of more than ``most``, evenly spaced ones, because rows of a file may be sorted.

    Args:
        dataset: what to take them from.
        split: which ones.
        held_out: numbers of the training rows that a run held out; None where the dataset is not that of a run.
        most: how many at the most.
    """
    train, test = dataset.train, dataset.test
    if split == "unseen":
        split = "test" if test is not None else "all rows" if held_out is None else "held out"
    if split == "test":
        if test is None:
            raise DataError(f"{dataset.name} has no test rows")
        numbers = evenly_spaced(len(test), most)
        return Selection(test.take(numbers), split, numbers, len(test))
    if split == "all rows":
        n = len(train) + (len(test) if test is not None else 0)
        numbers = evenly_spaced(n, most)
        unseen = None if held_out is None else (numbers >= len(train)) | np.isin(numbers, held_out)
        return Selection(_take_both(train, test, numbers), split, numbers, n, unseen)
    if held_out is None:
        raise DataError(f"{dataset.name} is not the data of the run: it has no {split} rows")
    numbers = held_out if split == "held out" else np.setdiff1d(np.arange(len(train)), held_out, assume_unique=True)
    if len(numbers) == 0:
        raise DataError("the run held nothing out and its data has no test rows: give some with --data")
    available, numbers = len(numbers), numbers[evenly_spaced(len(numbers), most)]
    seen = np.zeros(len(numbers), bool) if split == "train" else None
    return Selection(train.take(numbers), split, numbers, available, seen)


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
    factors = {
        name: np.concatenate([values, more.factors[name]])
        for name, values in rows.factors.items()
        if name in more.factors
    }
    return Rows(np.concatenate([rows.x, more.x]), rows.reading, factors)


def read_other(
    codec: Codec, data: str, before: str = "", root: Path | None = None, progress: Progress | None = None
) -> Dataset:
    """Data for a trained model, with the columns that it knows; a file is read as that of ``before`` was.

    Args:
        codec: the model.
        data: dataset or path.
        before: the data it was trained on; empty where that is not known.
        root: folder of the datasets.
        progress: called while data is prepared.
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
    require_shape(codec, dataset, data)
    return dataset


def require_shape(codec: Codec, dataset: Dataset, name: str) -> None:
    """An error where the model takes rows of another shape."""
    if dataset.x_shape != codec.model.x_shape:
        raise DataError(f"{name} has rows of shape {dataset.x_shape}, the model takes {codec.model.x_shape}")
