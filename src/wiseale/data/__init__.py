"""Load named datasets and the user's own files as a :class:`~wiseale.data.dataset.Dataset`."""

from __future__ import annotations

import os
from pathlib import Path

from wiseale import config, registry
from wiseale.data.dataset import Dataset, DatasetSource, Preset, Progress, Rows
from wiseale.data.shared import read_shared
from wiseale.errors import DataError
from wiseale.platform.folders import default_data_root

__all__ = ["Dataset", "DatasetSource", "Preset", "Rows", "is_path", "load_dataset"]


def is_path(spec: str) -> bool:
    """Whether a data argument is a path: it contains a path separator, or exists on disk and is no dataset's name.

    A folder in the current directory never hides a dataset of the same name, so that the experiments' and runs' own
    data is found wherever they are started; :func:`wiseale.data.source.named_data` is where people's words are read.

    >>> is_path("sine:n=20000"), is_path("folder/waves.npy")
    (False, True)
    """
    from wiseale.data.source import split_path

    name = os.path.splitdrive(spec)[1].partition(":")[0]  # without a drive such as C:
    if os.sep in name or "/" in name:
        return True
    return name not in registry.DATASETS and split_path(spec)[0].exists()


def load_dataset(
    spec: str,
    data_root: Path | None = None,
    progress: Progress | None = None,
    *,
    training: bool = True,
    columns: tuple[str, ...] = (),
) -> Dataset:
    """Load the dataset that a data argument names: ``"sine:n=20000"``, or a path.

    >>> load_dataset("sine:n=8").train.x.shape
    (8, 1, 256)

    Args:
        spec: name of a dataset, or a path, with settings.
        data_root: folder with the files of named datasets; the platform's default if None.
        progress: called with (rows done, rows in total) while images are packed or rendered.
        training: False accepts a path with what is too little to train on, such as a single row.
        columns: the features of a table that is a path, unless its settings choose others.
    """
    if not spec:
        raise DataError("no data given: name a dataset (sine, ...) or a file")
    parsed = read_shared(spec, data_root or default_data_root())
    if parsed is not None:
        return parsed
    if is_path(spec):
        from wiseale.data.source import load_path

        return load_path(spec, training=training, progress=progress, columns=columns)
    name = config.parse_spec(spec)[0]
    if "." in name:
        raise DataError(f"no file {spec}: check the path")
    source: DatasetSource = config.build("dataset", spec)
    return source.load(data_root or default_data_root(), progress)
