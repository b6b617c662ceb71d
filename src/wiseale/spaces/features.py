"""What encoders see of rows in the network's units."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wiseale.spaces.tables import MixedSpace


class Features(nn.Module):
    """x itself: rows of numbers that are all observed."""

    def forward(self, x: Tensor) -> Tensor:
        """The features of a batch, (M, *features_shape)."""
        return x

    def seen(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """All that a network sees, (M, *seen_shape), and the features among it."""
        return x, x

    def entries(self, mean: Tensor, loadings: Tensor) -> tuple[Tensor, Tensor]:
        """A linear model of the features, mean (W,) and loadings (W, d_z), as one of the decoder's entries."""
        return mean, loadings


class CellFeatures(Features):
    """Cells (M, C) to features (M, W): centred and scaled entries, 0 where a cell is missing, and a mask (M, C).

    Counts enter as log(1 + x). A category has one entry per level, all divided by one scale, so that every column has
    variance 1 in total.

    Attributes:
        shift: mean of every entry: of levels, their shares in the training rows.
        scale: what the entries are divided by.
        column: the column of each entry.
    """

    shift: Tensor
    scale: Tensor
    column: Tensor
    level: Tensor
    counted: Tensor

    def __init__(self, space: MixedSpace) -> None:
        super().__init__()
        entries = space.entries
        levels = [-1.0 if entry.level is None else float(entry.level) for entry in entries]
        counted = [space.columns[entry.column].is_count for entry in entries]
        self.register_buffer("shift", torch.zeros(len(entries)))
        self.register_buffer("scale", torch.ones(len(entries)))
        column = torch.tensor([entry.column for entry in entries], dtype=torch.long)
        self.register_buffer("column", column, persistent=False)
        self.register_buffer("level", torch.tensor(levels), persistent=False)
        self.register_buffer("counted", torch.tensor(counted, dtype=torch.bool), persistent=False)

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

    def seen(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The features and which cells were observed, (M, W + C), and the features, (M, W)."""
        features: Tensor = self(x)
        seen = torch.cat([features, (~x.isnan()).to(features)], 1)
        return seen, seen[:, : features.shape[1]]  # a view: products with it keep their bits

    def entries(self, mean: Tensor, loadings: Tensor) -> tuple[Tensor, Tensor]:
        """Neither centred nor scaled."""
        shift, scale = (part.cpu().to(mean) for part in (self.shift, self.scale))
        return shift + scale * mean, scale[:, None] * loadings

    @torch.no_grad()
    def fit(self, x: Tensor) -> None:
        """Take the means and scales of these rows; an entry that is constant or never observed keeps the scale 1."""
        raw = self.raw(x.to(self.shift)).cpu().double()  # Apple's GPU has no float64
        mean = raw.nanmean(0).nan_to_num(0.0)
        variance = (raw - mean).square().nanmean(0).nan_to_num(0.0)
        column = self.column.cpu()
        by_column = torch.zeros(int(column[-1]) + 1, dtype=torch.double)
        scale = by_column.index_add(0, column, variance).sqrt().index_select(0, column)
        self.shift.copy_(mean)
        self.scale.copy_(torch.where(scale > 1e-6, scale, 1.0))
