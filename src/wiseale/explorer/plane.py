"""The plane in which codes are shown: two latent units, or the first two principal components of the codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wiseale.explorer.observation import Values

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Plane:
    """u = A z for a code z: the rows of A (2, d_z) are orthonormal, so N(0, I) stays N(0, I) in the plane."""

    directions: Matrix

    @classmethod
    def of_units(cls, first: int, second: int, latent_dim: int) -> Plane:
        """The plane of two latent units."""
        return cls(np.eye(latent_dim)[[first, second]])

    @property
    def along_units(self) -> bool:
        """Whether A selects two units, so that posteriors stay independent along its axes."""
        return bool(np.all((self.directions == 0) | (self.directions == 1)))


@dataclass(frozen=True)
class Principal:
    """The first two principal components: the plane, and the share of the codes' variance along each."""

    plane: Plane
    shares: tuple[float, float]


def principal_plane(mu: Values) -> Principal:
    """Principal components of codes (n, d_z); the axes pass through the origin, where the prior is centred."""
    centred = mu.astype(np.float64) - mu.mean(axis=0, dtype=np.float64)
    variances, vectors = np.linalg.eigh(centred.T @ centred / len(mu))
    directions = vectors[:, ::-1][:, :2].T
    # The sign of an eigenvector is arbitrary: the largest entry is made positive.
    directions = directions * np.sign(directions[np.arange(2), np.abs(directions).argmax(axis=1)])[:, None]
    total = max(float(variances.sum()), 1e-30)
    return Principal(Plane(directions), (float(variances[-1]) / total, float(variances[-2]) / total))
