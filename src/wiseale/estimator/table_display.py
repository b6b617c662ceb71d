"""Columns of different kinds in displays: levels by name, or as probabilities where only numbers can be shown."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from wiseale.data.dataset import Rows
from wiseale.estimator.display import Floats
from wiseale.evaluation.encoded import Encoded
from wiseale.figures.columns import Levels, Scale
from wiseale.figures.table_entries import column_levels, entries_of_cells, entries_of_codes, table_entries
from wiseale.models.inference import Codec


@dataclass(frozen=True)
class Entries:
    """Decoded codes (…, entries), numbers and probabilities of levels; names and standard deviations of the entries."""

    values: Floats
    deviation: Floats
    names: tuple[str, ...]


def levels_of(codec: Codec, cells: Floats) -> Levels:
    """The levels of each column as text, none for numbers; empty where all columns are numbers."""
    return column_levels(_encoded(codec, cells[:1]))


@torch.no_grad()
def decoded_entries(codec: Codec, cells: Floats, codes: Floats) -> Entries:
    """The codes (…, latent_dim) decoded; the levels shown and the standard deviations are those of the cells (n, C)."""
    one = _encoded(codec, cells)
    entries = table_entries(one, cells)
    z = torch.from_numpy(codes.reshape(-1, codes.shape[-1])).to(next(codec.model.parameters()))
    values = entries_of_codes(one, entries, z)
    deviation = Scale.of(entries_of_cells(entries, cells)).deviation
    names = tuple(entry.name for entry in entries)
    return Entries(values.reshape(*codes.shape[:-1], -1), deviation, names)


def _encoded(codec: Codec, cells: Floats) -> Encoded:
    return Encoded.of(codec, Rows(cells), "all rows")
