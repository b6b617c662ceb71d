"""The plane in which codes are shown, and contours of the aggregate posterior and of the prior in it, as polylines.

Both are drawn as highest-density regions that enclose the same shares of probability: 39, 86 and 99 %, those inside the
circles of radius 1, 2 and 3 of N(0, I) in two dimensions. Where the aggregate equals the prior, the lines coincide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import contourpy
import numpy as np
import numpy.typing as npt

from wiseale.explorer.observation import Values

RADII = (1.0, 2.0, 3.0)
SHARES = tuple(1 - math.exp(-(radius**2) / 2) for radius in RADII)

_GRID = 160
_TURNED_GRID = 110
_TURNED_ROWS = 2000
_BLOCK = 200
_MOST_GRIDS = 8
_GROWTH = 0.12  # of a grid's width or height, on a side that a line crosses

Matrix = npt.NDArray[np.float64]
Polylines = tuple[tuple[Values, ...], ...]
"""For each of ``SHARES`` the lines around the region, each (m, 2)."""


@dataclass(frozen=True)
class Plane:
    """u = A z for a code z: the rows of A (2, d_z) are orthonormal, so N(0, I) stays N(0, I) in the plane.

    ``shares`` are those of the codes' variance along the principal components, where these are the axes.
    """

    directions: Matrix
    shares: tuple[float, ...] = ()

    @classmethod
    def of_units(cls, first: int, second: int, latent_dim: int) -> Plane:
        """The plane of two latent units."""
        return cls(np.eye(latent_dim)[[first, second]])

    @property
    def along_units(self) -> bool:
        """Whether A selects two units, so that posteriors stay independent along its axes."""
        return bool(np.all((self.directions == 0) | (self.directions == 1)))


def principal_plane(mu: Values) -> Plane:
    """The first two principal components of codes (n, d_z); the axes pass through the origin, the prior's centre."""
    centred = mu.astype(np.float64) - mu.mean(axis=0, dtype=np.float64)
    variances, vectors = np.linalg.eigh(centred.T @ centred / len(mu))
    directions = vectors[:, ::-1][:, :2].T
    # The sign of an eigenvector is arbitrary: the largest entry is made positive.
    directions = directions * np.sign(directions[np.arange(2), np.abs(directions).argmax(axis=1)])[:, None]
    total = max(float(variances.sum()), 1e-30)
    return Plane(directions, (float(variances[-1]) / total, float(variances[-2]) / total))


@dataclass(frozen=True)
class Contours:
    """The aggregate's lines, and the prior's where it is not N(0, I)."""

    aggregate: Polylines
    prior: Polylines | None = None


def density_contours(plane: Plane, mu: Values, sigma: Values | None) -> Polylines:
    """Contours of the mean of the posteriors N(mu_i, diag sigma_i²), (n, d_z), seen in the plane.

    Each posterior is widened by one step of the grid, below which nothing could be drawn. Without sigma (deterministic
    encoder, draws of a prior) it is widened by Scott's rule for kernel density estimates, n^(−1/6) standard deviations.
    The grid covers nearly all codes and grows on every side where the outermost line would leave it.
    """
    centres = mu @ plane.directions.T
    scott = centres.std(axis=0) * len(mu) ** (-1 / 6)
    margin: Matrix = 3 * (scott if sigma is None else np.full(2, float(np.median(sigma))))
    points = _TURNED_GRID if sigma is not None and not plane.along_units else _GRID
    low = np.minimum(np.quantile(centres, 0.001, axis=0) - margin, -3.3)
    high = np.maximum(np.quantile(centres, 0.999, axis=0) + margin, 3.3)
    for _ in range(_MOST_GRIDS):
        axes = np.linspace(low, high, points).T
        density = _density(axes, (high - low) / (points - 1), plane, centres, sigma, scott)
        level = _levels(axes, density)[-1]
        inside = density >= (0.0 if level is None else level)
        below, above = (np.array([inside[:, side].any(), inside[side, :].any()]) for side in (0, -1))
        if not (below.any() or above.any()):
            break
        low, high = low - below * _GROWTH * (high - low), high + above * _GROWTH * (high - low)
    return _regions(axes, density)


def _density(axes: Matrix, step: Matrix, plane: Plane, centres: Matrix, sigma: Values | None, scott: Matrix) -> Matrix:
    """Density (y, x) of the widened posteriors on the grid."""
    if sigma is None:
        return _independent(axes, centres, np.broadcast_to(np.maximum(step, scott), centres.shape))
    if plane.along_units:
        variance = (sigma.astype(np.float64) @ plane.directions.T) ** 2
        return _independent(axes, centres, np.sqrt(variance + step**2))
    rows = np.linspace(0, len(centres) - 1, min(len(centres), _TURNED_ROWS)).astype(int)
    return _correlated(axes, centres[rows], plane.directions, sigma[rows].astype(np.float64), step)


def _independent(axes: Matrix, centres: Matrix, width: Matrix) -> Matrix:
    """Density (y, x) of posteriors that are independent along the two axes: a product of two matrices."""
    factors = []
    for grid, centre, scale in zip(axes, centres.T, width.T, strict=True):
        z = ((grid[:, None] - centre) / scale).astype(np.float32)
        factors.append(np.exp(-0.5 * z * z) / scale.astype(np.float32))
    density: Matrix = (factors[1] @ factors[0].T).astype(np.float64)
    return density / (2 * math.pi * len(centres))


def _correlated(axes: Matrix, centres: Matrix, directions: Matrix, sigma: Matrix, step: Matrix) -> Matrix:
    """Density (y, x) of posteriors whose covariance in the plane is A diag(sigma²) Aᵀ."""
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2).astype(np.float32)
    covariance = np.einsum("id,nd,jd->nij", directions, sigma**2, directions) + np.diag(step**2)
    precision = np.linalg.inv(covariance)
    height = 1 / (2 * math.pi * np.sqrt(np.linalg.det(covariance)))
    density = np.zeros(len(grid), np.float32)
    for start in range(0, len(centres), _BLOCK):
        block = slice(start, start + _BLOCK)
        x, y = (grid[:, axis] - centres[block, axis, None].astype(np.float32) for axis in (0, 1))
        a, b, c = (precision[block, i, j, None].astype(np.float32) for i, j in ((0, 0), (0, 1), (1, 1)))
        density += height[block].astype(np.float32) @ np.exp(-0.5 * (a * x * x + 2 * b * x * y + c * y * y))
    return (density / len(centres)).astype(np.float64).reshape(len(axes[1]), len(axes[0]))


def _regions(axes: Matrix, density: Matrix) -> Polylines:
    """Lines around the smallest regions that hold each share of the probability."""
    generator = contourpy.contour_generator(axes[0], axes[1], density, line_type="Separate")
    lines = [[] if level is None else generator.lines(level) for level in _levels(axes, density)]
    return tuple(tuple(_thinned(line) for line in of_share if len(line) > 6) for of_share in lines)  # type: ignore[arg-type]


def _levels(axes: Matrix, density: Matrix) -> list[float | None]:
    """The density on the line around each share; None where the grid holds less than the share."""
    x, y = axes
    ordered = np.sort(density.ravel())[::-1]
    enclosed = np.cumsum(ordered) * (x[1] - x[0]) * (y[1] - y[0])
    places = np.searchsorted(enclosed, SHARES)
    return [float(ordered[place]) if place < len(ordered) else None for place in places]


def _thinned(line: Matrix) -> Values:
    points = line.astype(np.float32)
    return points if len(points) < 200 else np.concatenate([points[:-1:2], points[-1:]])
