"""Columns of different kinds as one row of numbers: where each column's features and decoder outputs stand.

A row of a table is stored as *cells*, one number per column: the value of a number or a count, 0 or 1 for a binary
column, the position of the level for a category, NaN where nothing was observed. The encoder's features and the
decoder's outputs have one entry per number, binary column and count, and one per level of a category.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import torch
from torch import Tensor, nn

from wiseale.config import SettingError

COUNTS = ("poisson", "negative_binomial")
_PLAIN = ("number", "binary", *COUNTS)


@dataclass(frozen=True)
class Layout:
    """The kinds of a table's columns and the places of their entries.

    >>> layout = Layout.parse("number,category:3,poisson")
    >>> layout.widths, layout.starts, layout.size
    ((1, 3, 1), (0, 1, 4), 5)
    """

    kinds: tuple[str, ...]
    widths: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Layout:
        """The layout of ``number,binary,category:3,poisson,negative_binomial``."""
        kinds, widths = [], []
        for item in text.split(",") if text else []:
            kind, _, levels = item.strip().partition(":")
            category = kind == "category" and levels.isdecimal() and int(levels) > 0
            if not category and (kind not in _PLAIN or levels):
                known = f"{', '.join(_PLAIN)} and category:LEVELS"
                raise SettingError("kinds", f"must be a list of {known}, got {item!r}")
            kinds.append(kind)
            widths.append(int(levels) if category else 1)
        return cls(tuple(kinds), tuple(widths))

    @property
    def size(self) -> int:
        """Features of a row, and outputs of the decoder."""
        return sum(self.widths)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first entry of every column."""
        return tuple(accumulate(self.widths, initial=0))[:-1]

    def columns(self, *kinds: str) -> list[int]:
        """The columns of these kinds."""
        return [i for i, kind in enumerate(self.kinds) if kind in kinds]

    def places(self, *kinds: str) -> list[int]:
        """The first entries of the columns of these kinds."""
        return [self.starts[i] for i in self.columns(*kinds)]


class CellFeatures(nn.Module):
    """Cells (M, C) to the encoder's features (M, W): centred and scaled entries, 0 where a cell is missing.

    Counts enter as log(1 + x). A category has one entry per level, all divided by one scale, so that every column has
    variance 1 in total.
    """

    shift: Tensor
    scale: Tensor
    column: Tensor
    level: Tensor
    counted: Tensor

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout
        self.register_buffer("shift", torch.zeros(layout.size))
        self.register_buffer("scale", torch.ones(layout.size))
        column = [i for i, width in enumerate(layout.widths) for _ in range(width)]
        level = [
            float(k) if layout.kinds[i] == "category" else -1.0 for i, w in enumerate(layout.widths) for k in range(w)
        ]
        self.register_buffer("column", torch.tensor(column, dtype=torch.long), persistent=False)
        self.register_buffer("level", torch.tensor(level), persistent=False)
        counted = torch.tensor([layout.kinds[i] in COUNTS for i in column], dtype=torch.bool)
        self.register_buffer("counted", counted, persistent=False)

    def raw(self, x: Tensor) -> Tensor:
        """The entries before they are centred and scaled, NaN where a cell is missing."""
        entries = x.index_select(1, self.column)
        one_hot = torch.where(entries.isnan(), entries, (entries == self.level).to(x))
        entries = torch.where(self.level >= 0, one_hot, entries)
        return torch.where(self.counted, entries.clamp_min(0).log1p(), entries)

    def forward(self, x: Tensor) -> Tensor:
        """The features of a batch of cells."""
        features = (self.raw(x) - self.shift) / self.scale
        return torch.where(features.isnan(), 0.0, features)

    @torch.no_grad()
    def fit(self, x: Tensor) -> None:
        """Take the means and scales of these rows; an entry that is constant or never observed keeps the scale 1."""
        raw = self.raw(x).cpu().double()  # Apple's GPU has no float64
        mean = raw.nanmean(0).nan_to_num(0.0)
        variance = (raw - mean).square().nanmean(0).nan_to_num(0.0)
        by_column = torch.zeros(len(self.layout.kinds), dtype=torch.double)
        column = self.column.cpu()
        scale = by_column.index_add(0, column, variance).sqrt().index_select(0, column)
        self.shift.copy_(mean)
        self.scale.copy_(torch.where(scale > 1e-6, scale, 1.0))


class Places(nn.Module):
    """Where the entries of each kind stand, as tensors that move with the model."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        groups = [layout.columns(kind) for kind in ("number", "binary", "category", *COUNTS)]
        grouped = [column for group in groups for column in group]
        most = max([layout.widths[i] for i in layout.columns("category")], default=1)
        levels = torch.arange(most)
        starts = torch.tensor(layout.places("category"), dtype=torch.long)[:, None]
        widths = torch.tensor([layout.widths[i] for i in layout.columns("category")], dtype=torch.long)[:, None]
        tensors = {
            "order": torch.tensor(grouped, dtype=torch.long).argsort(),
            "levels": (starts + levels).clamp_max(layout.size - 1),
            "beyond": levels >= widths,
            **{f"{kind}_columns": torch.tensor(layout.columns(kind), dtype=torch.long) for kind in set(layout.kinds)},
            **{f"{kind}_places": torch.tensor(layout.places(kind), dtype=torch.long) for kind in set(layout.kinds)},
        }
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor, persistent=False)

    def cells(self, x: Tensor, kind: str) -> Tensor:
        """The columns of one kind."""
        columns: Tensor = getattr(self, f"{kind}_columns")
        return x.index_select(1, columns)

    def entries(self, output: Tensor, kind: str) -> Tensor:
        """The decoder's outputs for the columns of one kind that has one entry each."""
        places: Tensor = getattr(self, f"{kind}_places")
        return output.index_select(1, places)

    def logits(self, output: Tensor) -> Tensor:
        """The decoder's outputs for categories, (M, columns, most levels), −∞ beyond a column's levels."""
        levels, beyond = self.get_buffer("levels"), self.get_buffer("beyond")
        return output[:, levels].masked_fill(beyond, -math.inf)
