"""The parts of training that run in C where a compiler is found; everything also works without (see README.md here).

- :mod:`~wiseale.kernels.conv`: chains of convolutions, forward and backward;
- :mod:`~wiseale.kernels.pairs`: log-sums over all pairs of diagonal Gaussians;
- :mod:`~wiseale.kernels.bytes`: rows of bytes as scaled float32.

Callers ask :func:`available` first, and use torch where it is False.
"""

from __future__ import annotations

from wiseale.kernels import build, bytes, conv, pairs  # noqa: A004

__all__ = ["available", "bytes", "conv", "pairs", "state"]


def available() -> bool:
    """Whether the kernels can be used; the first call on a machine compiles them, in about a second."""
    return build.kernels().library is not None


def state() -> str:
    """One line: how the kernels were compiled, or why they are not used.

    >>> state().startswith(("compiled by ", "not used: "))
    True
    """
    return build.kernels().state
