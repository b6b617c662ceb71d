"""Marginal maps: a smooth, strictly increasing function of each numeric column to normal scores, and back.

t(x) is a monotone rational-quadratic spline (Gregory & Delbourgo 1982, in the form of Durkan et al. 2019) through a few
quantiles of the training rows, so it has an exact derivative and an exact inverse. A column that is Gaussian up to
sampling noise gets an affine map; others get the spline, blended with it by a James–Stein weight.

Measured values are rounded, so most columns lie on a grid of some step, and some repeat one value (zeros). Such values
have a *cell*, the interval of scores that belongs to them: p(value) is the mass in the cell, and every score inside it
comes back as the value itself. The outermost cells are open, so a column on a grid stays inside the range it has had.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import ndtr, ndtri
from torch import Tensor

Array = npt.NDArray[np.float64]

MOST_KNOTS = 24
"""Knots of a column's spline between its atoms."""

ATOM_SHARE = 1 / 32
"""A value in this share of the rows (and in 3 rows) gets a cell with its exact mass."""

_FEWEST_BETWEEN = 8  # rows between two knots: fewer follow noise
_FINEST_STEP = 1e-4  # of the spread: a finer grid counts as continuous
_MOST_DECIMALS = 6
_NOISE = 1.0  # squared deviation from the affine map, in variances of an empirical quantile, that counts as noise
_PEAK = 8.0  # so many times that of a single quantile does too
_EDGE = 1e-12  # nearest approach to a bound, as a part of the distance from it to the nearest knot


@dataclass(frozen=True)
class MarginalMaps:
    """The maps of C columns, as float64 tensors; NaN (a missing cell) stays NaN everywhere.

    >>> x = torch.tensor([[0.0], [0.0], [0.0], [0.0], [1.5], [2.25], [4.75], [9.5]], dtype=torch.float64)
    >>> maps = MarginalMaps.fit(x.numpy())
    >>> torch.equal(maps.inverse(maps.forward(x)), x)
    True

    Attributes:
        knots: x of the knots, increasing, (C, K); columns with fewer continue along their last slope.
        scores: t of the knots, (C, K).
        slopes: t' at the knots, (C, K).
        last: position of a column's last own knot, (C,).
        lower, upper: bounds of the support, (C,), infinite where there is none.
        step: of the grid that the values lie on, (C,); 0 where there is none.
        origin: one value of that grid, (C,).
        floor, ceiling: values end here, (C,): at the ends of a grid, or at an atom or a bound where there is one.
        atoms: values beside the grid that have a cell, (C, A), NaN beyond a column's own.
        reach: half the width of such a cell, (C,).
    """

    knots: Tensor
    scores: Tensor
    slopes: Tensor
    last: Tensor
    lower: Tensor
    upper: Tensor
    step: Tensor
    origin: Tensor
    floor: Tensor
    ceiling: Tensor
    atoms: Tensor
    reach: Tensor

    @classmethod
    def fit(cls, x: Array) -> Self:
        """The maps of these rows, (n, C), some cells NaN."""
        columns = [_fit_column(np.sort(column[~np.isnan(column)])) for column in np.asarray(x, np.float64).T]
        knots = max((len(column.knots) for column in columns), default=2)
        atoms = max((len(column.atoms) for column in columns), default=0)
        padded = [column.padded(knots, atoms) for column in columns]
        names = [field.name for field in fields(cls)]
        return cls(*(torch.from_numpy(np.array([getattr(one, name) for one in padded])) for name in names))

    def tensors(self) -> dict[str, Tensor]:
        """The state, for a model file or a module's buffers; ``MarginalMaps(**tensors)`` is the inverse."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def forward(self, x: Tensor) -> Tensor:
        """Normal scores t(x) of values, both (n, C); x beyond a bound counts as just inside it."""
        inside = self._inside(x)
        k = self._bin(self.knots, inside)
        x0, width, y0, height, d0, d1 = self._pieces(k)
        secant, u = height / width, (inside - x0) / width
        between, r0, r1 = u * (1 - u), d0 / secant, d1 / secant
        spline = y0 + height * (u * u + r0 * between) / (1 + (r0 + r1 - 2) * between)
        return torch.where(
            inside < self._first_knot,
            self._left_tail(inside),
            torch.where(inside > self._last_knot, self._right_tail(inside), spline),
        )

    def log_derivative(self, x: Tensor) -> Tensor:
        """log t'(x) of values, both (n, C)."""
        inside = self._inside(x)
        x0, width, _, height, d0, d1 = self._pieces(self._bin(self.knots, inside))
        secant, u = height / width, ((inside - x0) / width).clamp(0, 1)
        between, r0, r1 = u * (1 - u), d0 / secant, d1 / secant
        above = r1 * u * u + 2 * between + r0 * (1 - u) ** 2
        spline = secant.log() + above.log() - 2 * (1 + (r0 + r1 - 2) * between).log()
        left = self._first_slope.log() + _log_ratio(self._first_knot - self.lower, inside - self.lower)
        right = self._last_slope.log() + _log_ratio(self.upper - self._last_knot, self.upper - inside)
        return torch.where(inside < self._first_knot, left, torch.where(inside > self._last_knot, right, spline))

    def inverse(self, t: Tensor) -> Tensor:
        """Values of normal scores, both (n, C): inside the support, and exact where a score is in a value's cell."""
        x0, width, y0, height, d0, d1 = self._pieces(self._bin(self.scores, t))
        r0, r1, rise = d0 * width / height, d1 * width / height, (t - y0).clamp_min(0)
        bend = rise * (r0 + r1 - 2)
        a, b, c = height * (1 - r0) + bend, height * r0 - bend, -rise
        u = 2 * c / (-b - (b * b - 4 * a * c).clamp_min(0).sqrt())
        x = torch.where(
            t < self._first_score,
            self._left_tail_inverse(t),
            torch.where(t > self._last_score, self._right_tail_inverse(t), x0 + u.clamp(0, 1) * width),
        )
        return self._snapped(x)

    def cell(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The scores between which a value lies, each (n, C); both t(x) where the column is continuous there.

        Given a Gaussian N(m, s²) for the score, log p(x) in nats of the user's units is log[Φ((b − m)/s) −
        Φ((a − m)/s)] − :meth:`log_width` for a cell (a, b), and log N(t(x); m, s²) + :meth:`log_derivative` elsewhere.
        """
        half = self._half_width(x)
        held = torch.maximum(torch.minimum(x, self.ceiling), self.floor)
        low, high = self.forward(held - half), self.forward(held + half)
        low = torch.where((half > 0) & (held - half < self.floor), -math.inf, low)
        high = torch.where((half > 0) & (held + half > self.ceiling), math.inf, high)
        return torch.where(x.isnan(), x, low), torch.where(x.isnan(), x, high)

    def log_width(self, x: Tensor) -> Tensor:
        """Log of the step of values on a grid, so that mass / step is a density; 0 for others, whose mass is p."""
        return torch.where(self.step > 0, self.step, 1.0).log().expand(x.shape)

    def _half_width(self, x: Tensor) -> Tensor:
        """Half the width of a value's cell; 0 where the column is continuous."""
        half = (self.step / 2).expand(x.shape)
        if self.atoms.shape[1]:
            near = (x[:, :, None] - self.atoms).abs() <= self.reach[:, None]
            half = torch.where(near.any(2), self.reach, half)
        return half

    def _snapped(self, x: Tensor) -> Tensor:
        """Values inside the support, those in a cell exactly the cell's value."""
        grid = self.origin + ((x - self.origin) / self.step).round() * self.step
        x = torch.where(self.step > 0, _shortest(grid, self.step), x)
        for atom in self.atoms.T:
            x = torch.where((x - atom).abs() <= self.reach, atom, x)
        return torch.maximum(torch.minimum(x, self.ceiling), self.floor)

    def _inside(self, x: Tensor) -> Tensor:
        low = self.lower + _EDGE * (self._first_knot - self.lower)
        high = self.upper - _EDGE * (self.upper - self._last_knot)
        x = torch.where(self.lower.isfinite(), torch.maximum(x, low), x)
        return torch.where(self.upper.isfinite(), torch.minimum(x, high), x)

    def _bin(self, edges: Tensor, values: Tensor) -> Tensor:
        """The piece of the spline that each value is in, (n, C)."""
        right = torch.searchsorted(edges.contiguous(), values.T.contiguous(), right=True).T - 1
        return right.clamp_min(0).minimum(self.last - 1)

    def _pieces(self, k: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Left end and width of pieces in x and in t, and the slopes at both ends."""

        def at(values: Tensor, k: Tensor) -> Tensor:
            return values.gather(1, k.T).T

        x0, y0 = at(self.knots, k), at(self.scores, k)
        width, height = at(self.knots, k + 1) - x0, at(self.scores, k + 1) - y0
        return x0, width, y0, height, at(self.slopes, k), at(self.slopes, k + 1)

    @property
    def _first_knot(self) -> Tensor:
        return self.knots[:, 0]

    @property
    def _first_score(self) -> Tensor:
        return self.scores[:, 0]

    @property
    def _first_slope(self) -> Tensor:
        return self.slopes[:, 0]

    @property
    def _last_knot(self) -> Tensor:
        return self.knots.gather(1, self.last[:, None])[:, 0]

    @property
    def _last_score(self) -> Tensor:
        return self.scores.gather(1, self.last[:, None])[:, 0]

    @property
    def _last_slope(self) -> Tensor:
        return self.slopes.gather(1, self.last[:, None])[:, 0]

    def _left_tail(self, x: Tensor) -> Tensor:
        """Linear down to −∞, or logarithmic towards a bound, with the first knot's slope."""
        room = self._first_knot - self.lower
        straight = self._first_score + self._first_slope * (x - self._first_knot)
        bent = self._first_score - self._first_slope * room * _log_ratio(room, x - self.lower)
        return torch.where(self.lower.isfinite(), bent, straight)

    def _right_tail(self, x: Tensor) -> Tensor:
        room = self.upper - self._last_knot
        straight = self._last_score + self._last_slope * (x - self._last_knot)
        bent = self._last_score + self._last_slope * room * _log_ratio(room, self.upper - x)
        return torch.where(self.upper.isfinite(), bent, straight)

    def _left_tail_inverse(self, t: Tensor) -> Tensor:
        room, way = self._first_knot - self.lower, (t - self._first_score) / self._first_slope
        bent = self.lower + room * (way / room).exp()
        return torch.where(self.lower.isfinite(), bent, self._first_knot + way)

    def _right_tail_inverse(self, t: Tensor) -> Tensor:
        room, way = self.upper - self._last_knot, (t - self._last_score) / self._last_slope
        bent = self.upper - room * (-way / room).exp()
        return torch.where(self.upper.isfinite(), bent, self._last_knot + way)


def _log_ratio(above: Tensor, below: Tensor) -> Tensor:
    """log(above / below) of distances from a bound, 0 where there is no bound."""
    return torch.where(above.isfinite(), above, 1.0).log() - torch.where(above.isfinite(), below, 1.0).log()


def _shortest(grid: Tensor, step: Tensor) -> Tensor:
    """Values on a grid of decimals without the last bits of the product: 0.3, not 0.30000000000000004."""
    return torch.where(step > 0, torch.round(grid, decimals=_MOST_DECIMALS), grid)


@dataclass(frozen=True)
class _Column:
    """The map of one column, see :class:`MarginalMaps`."""

    knots: Array
    scores: Array
    slopes: Array
    last: int
    lower: float
    upper: float
    step: float
    origin: float
    floor: float
    ceiling: float
    atoms: Array
    reach: float

    def padded(self, knots: int, atoms: int) -> _Column:
        """With this many knots and atoms."""
        more = np.arange(1, knots - len(self.knots) + 1)
        scale = 1.0 / self.slopes[-1]
        values = {name.name: getattr(self, name.name) for name in fields(self)}
        return _Column(
            **values
            | {
                "knots": np.r_[self.knots, self.knots[-1] + scale * more],
                "scores": np.r_[self.scores, self.scores[-1] + more],
                "slopes": np.r_[self.slopes, np.full(len(more), self.slopes[-1])],
                "atoms": np.r_[self.atoms, np.full(atoms - len(self.atoms), np.nan)],
            }
        )


def _fit_column(x: Array) -> _Column:
    """The map of one column's observed values, sorted."""
    if len(x) == 0:
        x = np.zeros(1)
    values, counts = np.unique(x, return_counts=True)
    lowest, highest = float(values[0]), float(values[-1])
    n, scale = len(x), float(np.abs(x).max()) or 1.0
    mean, spread = float(x.mean()), float((x / scale).std() * scale)  # squares of extreme values would not be finite
    if len(values) == 1:
        knots = lowest + np.array([-1.0, 1.0]) * max(1.0, abs(lowest)) * 1e-3
        ends = (-math.inf, math.inf)
        return _Column(
            knots, np.array([-1.0, 1.0]), _slopes(knots, np.array([-1.0, 1.0])), 1, *ends,
            max(1.0, abs(lowest)) * 1e-3, lowest, lowest, highest, np.empty(0), 0.0,
        )  # fmt: skip
    step = grid_step(values)
    step = step if step > _FINEST_STEP * spread else 0.0
    gap = float(np.diff(values).min())
    reach = step / 2 if step else gap / 1000
    atom = counts >= max(3, ATOM_SHARE * n)
    knots, shares = _quantiles(values, counts, atom, reach, on_grid=step > 0)
    scores = ndtri(shares)
    affine = (knots - mean) / spread
    density = np.exp(-0.5 * scores**2) / math.sqrt(2 * math.pi)
    variances = n * ((scores - affine) * density) ** 2 / (shares * (1 - shares))
    deviation = max(float(variances.mean()), float(variances.max()) / _PEAK) if len(knots) else 0.0
    weight = 1 - _NOISE / deviation if deviation > _NOISE else 0.0
    weight = weight if step or not atom.any() else 1.0
    is_affine = weight == 0.0 or len(knots) < 2
    if is_affine:
        knots = values[[0, -1]]
        scores = (knots - mean) / spread
    else:
        scores = weight * scores + (1 - weight) * affine
    lower, upper = _bounds(lowest, highest)
    lower = lower if lower < knots[0] else -math.inf  # a cell is open there
    upper = upper if upper > knots[-1] else math.inf
    floor = lowest if step or atom[0] else lower
    ceiling = highest if step or atom[-1] else upper
    atoms = values[atom] if not step else np.empty(0)
    slopes = _slopes(knots, scores)
    if math.isfinite(lower) and not is_affine:  # the tail is a line over the logarithm of the distance from the bound
        ratio = (knots[1] - lower) / (knots[0] - lower)
        slopes[0] = (scores[1] - scores[0]) / math.log(ratio) / (knots[0] - lower)
    if math.isfinite(upper) and not is_affine:
        ratio = (upper - knots[-2]) / (upper - knots[-1])
        slopes[-1] = (scores[-1] - scores[-2]) / math.log(ratio) / (upper - knots[-1])
    return _Column(knots, scores, slopes, len(knots) - 1, lower, upper, step, lowest, floor, ceiling, atoms, reach)


def grid_step(values: Array) -> float:
    """The largest step that all differences of the values are multiples of; 0 where they need over 6 decimals.

    >>> grid_step(np.array([1.5, 3.0, 4.5])), grid_step(np.array([0.0, 0.1234567]))
    (1.5, 0.0)
    """
    for decimals in range(_MOST_DECIMALS + 1):
        scaled = values * 10.0**decimals
        whole = scaled.round()
        if np.abs(whole).max() < 2.0**53 and np.allclose(scaled, whole, rtol=1e-12, atol=1e-6):
            return float(np.gcd.reduce(np.diff(whole).astype(np.int64)) / 10.0**decimals)
    return 0.0


def _bounds(lowest: float, highest: float) -> tuple[float, float]:
    """What a column of this range can hold: nothing below 0 if it has no negative values, and shares stay shares."""
    lower = 0.0 if lowest >= 0 else -math.inf
    if lowest >= 0 and 0.5 < highest <= 1:
        return lower, 1.0
    return lower, 0.0 if highest <= 0 else math.inf


def _quantiles(
    values: Array, counts: npt.NDArray[np.intp], atom: npt.NDArray[np.bool_], reach: float, *, on_grid: bool
) -> tuple[Array, Array]:
    """Knots (x, share of the rows below): both edges of every atom's cell, and quantiles between them."""
    n, below = int(counts.sum()), np.cumsum(counts) - counts
    edges: dict[float, float] = {}
    for k in np.flatnonzero(atom):
        edges[float(values[k] - reach)] = float(below[k])
        edges[float(values[k] + reach)] = float(below[k] + counts[k])
        if k in (0, len(values) - 1):  # the cell is open: its value is at the middle of its mass
            edges[float(values[k])] = float(below[k] + counts[k] / 2)
    fixed = sorted({min(max(rows, 0.0), float(n)) for rows in edges.values()})
    place = values + reach if on_grid else values
    rows: Array = below + counts * (1.0 if on_grid else 0.5)
    apart = max(_FEWEST_BETWEEN, n / 4 / MOST_KNOTS)
    levels = n * ndtr(np.linspace(-3, 3, MOST_KNOTS))
    previous = -math.inf
    for level in levels:
        nearest = int(np.abs(rows - level).argmin())
        at, share = float(place[nearest]), float(rows[nearest])
        near = min((abs(share - other) for other in fixed), default=math.inf)
        if atom[nearest] or near < apart / 2 or share - previous < apart / 2 or not 1 <= share <= n - 1:
            continue
        edges[at] = share
        previous = share
    edges |= _gap_ends(place, rows, sorted(edges))
    inner = {at: share for at, share in edges.items() if 0 < share < n}
    knots = np.array(sorted(inner))
    shares = np.array([inner[at] for at in knots])
    rising = np.r_[True, np.diff(np.maximum.accumulate(shares)) > 0] if len(shares) else np.zeros(0, bool)
    return knots[rising], shares[rising] / n


def _gap_ends(place: Array, rows: Array, knots: list[float]) -> dict[float, float]:
    """Both ends of gaps wider than half the distance between two knots, so that little mass falls into them."""
    ends: dict[float, float] = {}
    for low, high in pairwise(knots):
        inside = (place >= low) & (place <= high)
        at, share = place[inside], rows[inside]
        if len(at) < 4 or share[-1] - share[0] < _FEWEST_BETWEEN / 2:
            continue
        widest = int(np.diff(at).argmax())
        if at[widest + 1] - at[widest] > (high - low) / 2:
            ends |= {float(at[k]): float(share[k]) for k in (widest, widest + 1)}
    return ends


def _slopes(knots: Array, scores: Array) -> Array:
    """t' at the knots: the harmonic mean of the neighbouring secants (Fritsch & Butland 1984), exact for a line."""
    secants = np.diff(scores) / np.diff(knots)
    inner = 2 / (1 / secants[:-1] + 1 / secants[1:])
    slopes: Array = np.r_[secants[0], inner, secants[-1]]
    return slopes
