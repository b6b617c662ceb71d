"""Rows of bytes as scaled float32, gathered and converted in one pass by C."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from wiseale.kernels import build


def gather(rows: Tensor, chosen: Tensor, scale: float) -> Tensor:
    """``rows[chosen].float() * scale``, bit for bit; IndexError if an index is negative or too large.

    Args:
        rows: (n, …) uint8, contiguous, on the CPU; may be memory-mapped and read-only.
        chosen: (m,) positions.
        scale: factor.

    Returns:
        (m, …) float32.
    """
    kernels = build.kernels()
    assert kernels.library is not None
    assert rows.dtype == torch.uint8
    assert rows.is_contiguous()
    chosen = chosen.to(torch.int64).contiguous()
    result = torch.empty((len(chosen), *rows.shape[1:]), dtype=torch.float32, device="cpu")
    source = rows.data_ptr(), len(rows), math.prod(rows.shape[1:])
    target = result.data_ptr(), kernels.threads
    if not kernels.library.wiseale_gather_bytes(*source, chosen.data_ptr(), len(chosen), scale, *target):
        raise IndexError(f"rows {chosen.min()} to {chosen.max()} asked for: there are {len(rows)}")
    return result
