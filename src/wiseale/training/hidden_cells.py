"""Cells of a table hidden from the encoder in training, so that it learns codes for rows with any cells missing."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from wiseale.networks.model import Model
from wiseale.processes.world import ALONE, World
from wiseale.randomness import generator


def hide_cells(model: Model, x: Tensor, seed: int, step: int, world: World = ALONE) -> Tensor:
    """The cells that the encoder sees in this step: of a table some are hidden at random, otherwise x itself.

    The loss still counts every observed cell: the posterior of fewer cells is one more q(z), so the objective stays the
    bound that it is. The same cells are hidden in every pass of a step over the batch. Draws are for the rows of all
    ranks, of which x is this rank's part.
    """
    if model.likelihood.hidden == 0:
        return x
    size = len(x) * world.size
    draws = torch.rand((size, *x.shape[1:]), generator=generator(seed, "hide", step))[world.part(size)]
    return x.masked_fill((draws < model.likelihood.hidden).to(x.device), math.nan)
