"""A dataset that is parsed once and read by several processes, as memory-mapped arrays in a folder."""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from wiseale.data.dataset import Array, Dataset, Preset, Rows
from wiseale.platform.json_files import to_json
from wiseale.platform.locks import exclusive_lock, is_locked
from wiseale.spaces import read_space

VARIABLE = "WISEALE_SHARED_DATA"
"""Environment variable: the folder of the dataset that the process which started this one has parsed."""

_BEING_MADE_SECONDS = 60.0


@contextmanager
def shared(dataset: Dataset, spec: str, data_root: Path, folder: Path) -> Iterator[None]:
    """Inside, :func:`~wiseale.data.load_dataset` of this spec reads ``folder``, in processes started inside as well.

    Several processes may share data from one folder, where each has a folder of its own. Sets that are memory-mapped
    anyway, or whose factors are Python objects, are not copied: each process loads them.
    """
    splits = {"train": dataset.train} | ({} if dataset.test is None else {"test": dataset.test})
    arrays = [values for rows in splits.values() for values in (rows.x, *rows.factors.values())]
    if _is_mapped(dataset.train.x) or any(array.dtype.hasobject for array in arrays):
        yield
        return
    for path in folder.iterdir() if folder.is_dir() else ():  # what killed processes have left
        with suppress(OSError):
            is_old = time.time() - path.stat().st_mtime > _BEING_MADE_SECONDS  # a newer one may not be locked yet
            if is_old and not is_locked(path):
                shutil.rmtree(path, ignore_errors=True)
    own = folder / f"{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"
    own.mkdir(parents=True)
    with exclusive_lock(own, wait=False):
        yield from _written(dataset, spec, data_root, own, splits)
    with suppress(OSError):  # another process shares the data of the same comparison
        folder.rmdir()


def _is_mapped(x: Array) -> bool:
    """Whether an array, or the array that it is a view of, is a file mapped into memory."""
    base: object = x
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    return isinstance(base, np.memmap)


def _written(dataset: Dataset, spec: str, data_root: Path, folder: Path, splits: Mapping[str, Rows]) -> Iterator[None]:
    try:
        description = {
            "spec": spec,
            "data_root": str(data_root),
            "splits": {name: _write(rows, folder, name) for name, rows in splits.items()},
            "dataset": {key: value for key, value in vars(dataset).items() if key not in ("train", "test")}
            | {"preset": asdict(dataset.preset), "ours": dict(dataset.ours), "circular": dict(dataset.circular)}
            | {"space": dataset.space.to_values()},
        }
        (folder / "dataset.json").write_text(to_json(description), encoding="utf-8")
        os.environ[VARIABLE] = str(folder.absolute())
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        shutil.rmtree(folder, ignore_errors=True)


def read_shared(spec: str, data_root: Path) -> Dataset | None:
    """The dataset of this spec, if the process that started this one has parsed it; else None."""
    if VARIABLE not in os.environ:
        return None
    folder = Path(os.environ[VARIABLE])
    description = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
    if (description["spec"], description["data_root"]) != (spec, str(data_root)):
        return None
    splits = {name: _read(rows, folder, name) for name, rows in description["splits"].items()}
    facts = description["dataset"]
    facts |= {"preset": Preset(**facts["preset"]), "space": read_space(facts["space"])}
    return Dataset(train=splits["train"], test=splits.get("test"), **facts)


def _write(rows: Rows, folder: Path, split: str) -> dict[str, Any]:
    np.save(folder / f"{split}.npy", rows.x, allow_pickle=False)
    for number, values in enumerate(rows.factors.values()):
        np.save(folder / f"{split}-{number}.npy", values, allow_pickle=False)
    return {"reading": rows.reading, "factors": list(rows.factors)}


def _read(description: dict[str, Any], folder: Path, split: str) -> Rows:
    x = np.load(folder / f"{split}.npy", mmap_mode="r")
    names = enumerate(description["factors"])
    factors = {name: np.load(folder / f"{split}-{number}.npy") for number, name in names}
    return Rows(x, description["reading"], factors)
