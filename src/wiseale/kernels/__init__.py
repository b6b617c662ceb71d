"""The parts of training that run in C where a compiler is found; everything also works without (see README.md here).

- :mod:`~wiseale.kernels.conv`: chains of convolutions, forward and backward;
- :mod:`~wiseale.kernels.pairs`: log-sums over all pairs of diagonal Gaussians;
- :func:`gather_bytes`: rows of bytes as scaled float32.

Callers ask :func:`available` first, and use torch where it is False.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from wiseale.kernels import build, conv, pairs

__all__ = ["available", "conv", "gather_bytes", "pairs", "state"]


def available() -> bool:
    """Whether the kernels can be used; the first call on a machine compiles them, in about a second."""
    return build.kernels().library is not None


def state() -> str:
    """One line: how the kernels were compiled, or why they are not used.

    >>> state().startswith(("compiled by ", "not used: "))
    True
    """
    return build.kernels().state


def gather_bytes(rows: Tensor, positions: Tensor, scale: float) -> Tensor:
    """``rows[positions].float() * scale``, bit for bit; IndexError if a position is negative or too large.

    Args:
        rows: (n, …) uint8, contiguous, on the CPU; may be memory-mapped and read-only.
        positions: (m,).
        scale: factor.

    Returns:
        (m, …) float32.
    """
    kernels = build.kernels()
    assert kernels.library is not None
    assert rows.dtype == torch.uint8
    assert rows.is_contiguous()
    positions = positions.to(torch.int64).contiguous()
    result = torch.empty((len(positions), *rows.shape[1:]), dtype=torch.float32, device="cpu")
    source = rows.data_ptr(), len(rows), math.prod(rows.shape[1:])
    target = result.data_ptr(), kernels.threads
    if not kernels.library.wiseale_gather_bytes(*source, positions.data_ptr(), len(positions), scale, *target):
        raise IndexError(f"rows {positions.min()} to {positions.max()} asked for: there are {len(rows)}")
    return result
