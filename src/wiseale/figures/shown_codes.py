"""Which rows and codes a figure shows, chosen from arrays of posterior means."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MAX_UNITS = 5
REACH = 2.0  # standard deviations on either side of the mean

Floats = npt.NDArray[np.floating]
Indices = npt.NDArray[np.int64]


def spread_rows(n: int, most: int, factor: npt.NDArray[np.generic] | None = None) -> Indices:
    """Indices of at most ``most`` of n rows, evenly spaced after sorting by the factor, or in their order without one.

    >>> spread_rows(9, 3).tolist(), spread_rows(2, 3).tolist()
    ([0, 4, 8], [0, 1])
    """
    order = np.arange(n) if factor is None else np.argsort(np.asarray(factor), kind="stable")
    chosen: Indices = order[np.linspace(0, n - 1, min(most, n)).astype(int)]
    return chosen


def widest_units(mu: Floats, most: int) -> tuple[int, ...]:
    """The units of the code whose means (n, d_z) vary most, in their order in the code.

    >>> widest_units(np.array([[0.0, 1.0, 5.0], [3.0, 1.5, -5.0]]), 2)
    (0, 2)
    """
    chosen = np.argsort(-mu.var(0), kind="stable")[:most]
    return tuple(sorted(int(unit) for unit in chosen))


def traversal_codes(mu: Floats, sigma: Floats | None, start: Floats, units: tuple[int, ...], steps: int) -> Floats:
    """Codes (units, steps, d_z) from the code ``start``: each unit over mean ± ``REACH``·s of the codes of all rows.

    s² = Var mu + mean sigma², the variance of the aggregate posterior; sigma is None for a deterministic encoder.

    >>> mu = np.array([[-1.0, 7.0], [1.0, 7.0]])
    >>> traversal_codes(mu, None, mu[0], (0,), 3)[0].tolist()
    [[-2.0, 7.0], [0.0, 7.0], [2.0, 7.0]]
    """
    spread = np.sqrt(mu.var(0) + (0 if sigma is None else (sigma**2).mean(0)))
    codes = np.tile(start, (len(units), steps, 1))
    for place, unit in enumerate(units):
        codes[place, :, unit] = mu[:, unit].mean() + spread[unit] * np.linspace(-REACH, REACH, steps)
    return codes
