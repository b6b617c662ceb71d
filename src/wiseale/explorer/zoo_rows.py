"""The rows of models of the zoo: their datasets are not installed with them, so codes of some rows are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wiseale.data import Rows
from wiseale.errors import DataError
from wiseale.explorer.opening import Opened, ShownRows
from wiseale.models.places import ZooEntry, read_codes, read_entry


def shown_dataset(models: Sequence[Opened]) -> str | None:
    """The generated dataset that suits models of the zoo; None where there is none, or a model is not of the zoo."""
    entries = _entries(models)
    return entries[0].shown or None if entries else None


def stored_rows(models: Sequence[Opened]) -> ShownRows | None:
    """The rows whose codes are stored with every one of these models; None where they are not all of the zoo."""
    entries = _entries(models)
    if not entries:
        return None
    kept = [read_codes(model.path) for model in models if model.path]
    first, entry = kept[0], entries[0]
    if any(not np.array_equal(one.numbers, first.numbers) for one in kept):
        raise DataError(f"the models keep codes of different rows: give the rows to show with --data {entry.dataset}")
    n, shape = len(first.numbers), models[0].codec.model.x_shape
    rows = Rows(np.broadcast_to(np.float32(0), (n, *shape)), factors=first.labels)  # placeholders: codes stand for them
    codes = tuple(one.codes for one in kept)
    trained = tuple(0 for _ in models)  # test rows
    return ShownRows(
        rows, first.numbers, entry.available, "test", entry.dataset, (), circular={}, trained_on=trained, codes=codes
    )


def _entries(models: Sequence[Opened]) -> list[ZooEntry]:
    """What the zoo says of each model; empty unless all are of the zoo and of one dataset."""
    found = [read_entry(model.path) if model.path else None for model in models]
    known = [entry for entry in found if entry is not None]
    return known if len(known) == len(found) and len({entry.dataset for entry in known}) == 1 else []
