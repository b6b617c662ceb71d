"""Counter-based randomness: every draw depends on (seed, purpose, counters) only, never on earlier draws.

A resumed run therefore needs no saved generator state, and ranks draw the same numbers without communication.
"""

from __future__ import annotations

import hashlib
import math
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

MOST_LISTED = 1 << 22
"""Rows of the largest set whose order is drawn as a list of all row numbers (32 MB); see :func:`shuffled`."""

_ROUNDS = 8  # of the Feistel network
_WINDOW = 1 << 16  # row numbers computed at a time, 0.5 MB: a batch alone would spend its time in NumPy's overhead

Purpose = Literal[
    "weights",
    "start",
    "held out",
    "order",
    "noise",
    "held-out noise",
    "held-out order",
    "objective",
    "critic",
    "binarize",
    "hide",
    "evaluate",
    "sample",
]


def derive_seed(seed: int, purpose: Purpose, *counters: int) -> int:
    """A 63-bit seed for one purpose; different purposes or counters give unrelated streams.

    >>> len({derive_seed(0, "noise", 7), derive_seed(0, "noise", 7), derive_seed(0, "noise", 8)})
    2
    """
    text = "/".join(map(str, (seed, purpose, *counters)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def generator(seed: int, purpose: Purpose, *counters: int) -> torch.Generator:
    """A CPU generator for one purpose; draws are moved to the device afterwards, so every device gets the same."""
    return torch.Generator().manual_seed(derive_seed(seed, purpose, *counters))


def permutation(n: int, seed: int, purpose: Purpose, *counters: int) -> Tensor:
    """A random permutation of 0, …, n − 1, int64 (n,)."""
    return torch.randperm(n, generator=generator(seed, purpose, *counters))


def shuffled(n: int, seed: int, purpose: Purpose, *counters: int, listed: bool = False) -> Tensor | KeyedOrder:
    """A random order of 0, …, n − 1, to be sliced; up to :data:`MOST_LISTED` numbers, or ``listed``, a permutation.

    >>> shuffled(10**12, 0, "order", 3)[64:66].shape
    torch.Size([2])
    """
    if listed or n <= MOST_LISTED:
        return permutation(n, seed, purpose, *counters)
    return KeyedOrder(n, derive_seed(seed, purpose, *counters))


class KeyedOrder:
    """An order of 0, …, n − 1 that is computed, not stored: ``order[a:b]`` are the numbers at places a, …, b − 1.

    A Feistel network: with a = ⌈√n⌉ a place is (l, r) in base a, and a round maps it to (r, l + f_i(r) mod a), which
    is invertible whatever f_i is; here f_i is a 64-bit hash of r and the round's key. It permutes 0, …, a² − 1; a
    result of n or more is mapped again until it is below n, which leaves a permutation of 0, …, n − 1.
    """

    def __init__(self, n: int, key: int) -> None:
        if not 1 <= n < 1 << 60:
            raise ValueError(f"an order needs 1 to 2⁶⁰ numbers, got {n}")
        self._n = n
        self._base = np.uint64(math.isqrt(n - 1) + 1)
        digest = hashlib.blake2b(key.to_bytes(8, "little"), digest_size=8 * _ROUNDS).digest()
        self._keys = np.frombuffer(digest, "<u8").astype(np.uint64)
        self._first, self._window = 0, np.empty(0, np.int64)

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, places: slice) -> Tensor:
        start, stop, step = places.indices(self._n)
        if step != 1:
            raise ValueError("an order is read in sequence: slice it without a step")
        stop = max(start, stop)
        if start < self._first or stop > self._first + len(self._window):
            end = min(self._n, max(stop, start + _WINDOW))
            self._first, self._window = start, self._numbers(np.arange(start, end, dtype=np.uint64))
        return torch.from_numpy(self._window[start - self._first : stop - self._first].copy())

    def _numbers(self, places: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        found = self._permuted(places)
        outside = np.flatnonzero(found >= self._n)
        while len(outside):
            found[outside] = self._permuted(found[outside])
            outside = outside[found[outside] >= self._n]
        return found.astype(np.int64)

    def _permuted(self, places: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        left, right = np.divmod(places, self._base)
        for key in self._keys:
            moved = left + _below(self._base, _mixed(right + key))
            moved -= np.where(moved >= self._base, self._base, np.uint64(0))
            left, right = right, moved
        return left * self._base + right


def _mixed(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A 64-bit hash in which every bit depends on every bit of x: SplitMix64's output function (Steele et al. 2014)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def _below(limit: np.uint64, x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """64-bit hashes as numbers below the limit, which is at most 2³²: their upper 32 bits as a fraction of it."""
    return ((x >> np.uint64(32)) * limit) >> np.uint64(32)


def standard_normal(shape: tuple[int, ...], seed: int, purpose: Purpose, *counters: int) -> Tensor:
    """Standard normal noise of the given shape, float32 on the CPU."""
    return torch.randn(shape, generator=generator(seed, purpose, *counters))
