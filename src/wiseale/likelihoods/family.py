"""p(x|z): the decoder's answer for a batch of codes, normalising constants included, so that ELBOs are real nats.

A *family* is what a user chooses (a name and settings); given the decoder's output it returns a *likelihood*.
"""

from __future__ import annotations

import math
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor

from wiseale.errors import DataError


class Likelihood(Protocol):
    """A distribution over x for each of M codes."""

    @property
    def mean(self) -> Tensor:
        """E[x|z], ``(M, *x_shape)``: the reconstruction x_hat."""
        ...

    def log_prob(self, x: Tensor) -> Tensor:
        """log p(x_i|z_i) in nats, summed over the entries of x, (M,)."""
        ...

    def average_log_prob(self, x: Tensor) -> Tensor:
        """(1/N) Σ_j log p(x_j|z_i) over the N observations given, ``(N, *x_shape)``, for every code, nats, (M,)."""
        ...

    def surprise(self, x: Tensor) -> Tensor:
        """Log p of the expected entry less log p of the observed one, ``(M, *x_shape)``, nats, NaN if not observed."""
        ...

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One draw of x per code, ``(M, *x_shape)``."""
        ...


@runtime_checkable
class ErrsByCell(Protocol):
    """A likelihood with a measure of error of its own for every entry of x."""

    def errors(self, x: Tensor) -> Tensor:
        """How wrong each entry comes back, ``(M, *x_shape)``, NaN where it was not observed."""
        ...


class LikelihoodFamily(Protocol):
    """What turns the decoder's output into a likelihood.

    Attributes:
        support: smallest and largest value of x that has a likelihood.
        standardizes: whether x may be shifted and scaled before it is learned.
    """

    support: ClassVar[tuple[float, float]]
    standardizes: ClassVar[bool]

    def __call__(self, output: Tensor) -> Likelihood:
        """The likelihood whose parameters are the decoder's output, ``(M, *x_shape)``."""
        ...

    def build(self, x_shape: tuple[int, ...]) -> LikelihoodFamily:
        """What a model holds: the family itself, or a module if it has parameters to learn."""
        ...

    def start_noise(self, residual: float) -> float:
        """Begin training with noise that suits residuals of this variance per entry; the variance that was taken."""
        ...

    def start_decoder(self, mean: Tensor, loadings: Tensor, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (D, d_z) and bias (D,) of a linear decoder whose likelihood has the mean ``mean + loadings z``.

        Where the link is not linear this holds about z = 0; x (n, D) and codes z (n, d_z) are rows to judge it by.
        """
        ...


def normal_like(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Standard normal noise of the same shape, dtype and device, drawn on the CPU, of which generators are."""
    return torch.randn(like.shape, dtype=like.dtype, generator=generator).to(like.device)


def cell_errors(likelihood: Likelihood, x: Tensor) -> Tensor:
    """How wrong each entry of x comes back: (x − mean)², unless the likelihood has a measure of its own."""
    return likelihood.errors(x) if isinstance(likelihood, ErrsByCell) else (x - likelihood.mean).square()


def mean_error(errors: Tensor) -> Tensor:
    """The mean of each row's errors, (M,), over the entries that were observed."""
    flat = errors.flatten(1)
    return flat.nanmean(1) if bool(flat.isnan().any()) else flat.mean(1)


def check_support(family: LikelihoodFamily, smallest: float, largest: float) -> None:
    """Refuse x whose smallest or largest value is outside the family's support."""
    low, high = family.support
    if (low, high) == (-math.inf, math.inf):  # also where cells are missing, which no range holds
        return
    if not (low <= smallest and largest <= high):
        name = type(family).__name__.removesuffix("Family")
        raise DataError(
            f"a {name} likelihood needs values between {low:g} and {high:g}: "
            f"the data goes from {smallest:g} to {largest:g}"
        )
