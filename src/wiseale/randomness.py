"""Counter-based randomness: every draw follows from (seed, purpose, counters), never from a generator's history.

So a resumed run needs no saved generator, and several ranks can draw the same numbers without talking.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import torch
from torch import Tensor

Purpose = Literal[
    "weights", "held out", "order", "noise", "held-out noise", "objective", "critic", "binarize", "evaluate", "sample"
]


def derive_seed(seed: int, purpose: Purpose, *counters: int) -> int:
    """A 63-bit seed for one purpose; different purposes or counters give unrelated streams."""
    text = "/".join(map(str, (seed, purpose, *counters)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def generator(seed: int, purpose: Purpose, *counters: int) -> torch.Generator:
    """A CPU generator for one purpose; draws are moved to the device afterwards, so they do not depend on it."""
    return torch.Generator().manual_seed(derive_seed(seed, purpose, *counters))


def permutation(n: int, seed: int, purpose: Purpose, *counters: int) -> Tensor:
    """A random order of n rows, (n,)."""
    return torch.randperm(n, generator=generator(seed, purpose, *counters))


def standard_normal(shape: tuple[int, ...], seed: int, purpose: Purpose, *counters: int) -> Tensor:
    """Standard normal noise."""
    return torch.randn(shape, generator=generator(seed, purpose, *counters))
