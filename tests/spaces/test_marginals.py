"""Marginal maps against quadrature, autograd, finite differences and the distributions that columns were drawn from."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats

from wiseale.spaces.marginals import MarginalMaps, grid_step

RNG = np.random.default_rng(0)
N = 300

CONTINUOUS = {
    "gaussian": RNG.normal(5, 2, N),
    "lognormal": np.exp(RNG.normal(10, 1, N)),
    "heavy tails": RNG.standard_t(2, N),
    "shares": RNG.beta(0.5, 0.5, N),
    "two humps": np.r_[RNG.normal(-3, 0.5, N // 2), RNG.normal(3, 0.5, N // 2)],
    "negative": -RNG.gamma(2.0, 3.0, N),
}
GRIDS = {
    "ratings": RNG.integers(1, 6, N).astype(float),
    "counts": RNG.poisson(20, N).astype(float),
    "tenths": RNG.normal(0, 1, N).round(1),
    "halves": RNG.integers(0, 9, N) / 2,
    "many zeros": np.where(RNG.random(N) < 0.6, 0.0, RNG.poisson(9, N)),
}
SPIKES = {
    "zeros and more": np.where(RNG.random(N) < 0.4, 0.0, RNG.gamma(2, 3, N)),
    "a value in the middle": np.where(RNG.random(N) < 0.2, 1.5, RNG.normal(1, 2, N)),
    "censored above": np.minimum(RNG.gamma(2, 3, N), 8.0),
}
EVERY = CONTINUOUS | GRIDS | SPIKES


def fit(values: np.ndarray) -> MarginalMaps:
    return MarginalMaps.fit(values[:, None])


def column(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, np.float64))[:, None]


@pytest.mark.parametrize("name", EVERY)
def test_a_value_comes_back_from_its_score(name: str) -> None:
    x, maps = column(EVERY[name]), fit(EVERY[name])
    torch.testing.assert_close(maps.inverse(maps.forward(x)), x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [*GRIDS, *SPIKES])
def test_values_of_a_cell_come_back_exactly_from_anywhere_in_it(name: str) -> None:
    x, maps = column(np.unique(EVERY[name])), fit(EVERY[name])
    low, high = maps.cell(x)
    inside = high > low
    assert inside.any()
    for part in (0.001, 0.5, 0.999):
        start, end = low.clamp_min(-9.0), high.clamp_max(9.0)
        assert torch.equal(maps.inverse(start + part * (end - start))[inside], x[inside])


@pytest.mark.parametrize("name", EVERY)
def test_scores_rise_strictly(name: str) -> None:
    values = EVERY[name]
    x = column(np.linspace(values.min() - 0.1 * np.ptp(values), values.max() + 0.1 * np.ptp(values), 2001))
    maps = fit(values)
    inside = ((x > maps.lower) & (x < maps.upper))[:, 0]
    assert (maps.forward(x[inside]).diff(dim=0) > 0).all()


@pytest.mark.parametrize("name", EVERY)
def test_log_derivative_is_that_of_autograd_and_of_differences(name: str) -> None:
    values = EVERY[name]
    maps = fit(values)
    x = column(np.linspace(values.min(), values.max(), 501)[1:-1] + 1e-4 * math.pi).requires_grad_()
    t = maps.forward(x)
    (gradient,) = torch.autograd.grad(t.sum(), x)
    torch.testing.assert_close(maps.log_derivative(x), gradient.log(), rtol=1e-9, atol=1e-9)
    h = 1e-7 * np.ptp(values)
    smooth = ((x[:, :, None] - maps.knots).abs() > 3 * h).all(2)  # the second derivative jumps at a knot
    slope = (maps.forward(x + h) - maps.forward(x - h)) / (2 * h)
    torch.testing.assert_close(slope[smooth].log(), maps.log_derivative(x)[smooth], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_density_integrates_to_one(name: str) -> None:
    maps = fit(CONTINUOUS[name])

    def mass(
        start: float, end: float, at: Callable[[np.ndarray], np.ndarray], width: Callable[[np.ndarray], np.ndarray]
    ) -> float:
        """∫ of the density over x = at(u), dx = width(u) du."""
        u = 0.5 * (end - start) * (nodes + 1) + start
        x = column(at(u))
        density = (-0.5 * maps.forward(x) ** 2 + maps.log_derivative(x)).exp()[:, 0].numpy() / math.sqrt(2 * math.pi)
        return float((density * width(u) * weights).sum() * 0.5 * (end - start))

    nodes, weights = np.polynomial.legendre.leggauss(400)
    low, high = maps.inverse(column(np.array([-9.0, 9.0])))[:, 0].tolist()
    knots, lower, upper = maps.knots[0].numpy(), float(maps.lower), float(maps.upper)
    total = sum(mass(a, b, lambda u: u, np.ones_like) for a, b in pairwise(knots))
    if math.isinf(lower):
        total += mass(low, knots[0], lambda u: u, np.ones_like)
    else:  # over the logarithm of the distance from the bound
        total += mass(math.log(knots[0] - lower) - 27, math.log(knots[0] - lower), lambda u: lower + np.exp(u), np.exp)
    if math.isinf(upper):
        total += mass(knots[-1], high, lambda u: u, np.ones_like)
    else:
        total += mass(
            math.log(upper - knots[-1]) - 27, math.log(upper - knots[-1]), lambda u: upper - np.exp(u), np.exp
        )
    assert total == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize(("mean", "sigma"), [(0.0, 1.0), (1.3, 0.2)])
def test_masses_on_a_grid_sum_to_one(name: str, mean: float, sigma: float) -> None:
    values, maps = GRIDS[name], fit(GRIDS[name])
    step = float(maps.step)
    x = column(np.arange(values.min(), values.max() + step / 2, step))
    low, high = maps.cell(x)
    mass = stats.norm.cdf((high - mean) / sigma) - stats.norm.cdf((low - mean) / sigma)
    assert mass.sum() == pytest.approx(1, abs=1e-12)
    torch.testing.assert_close(maps.log_width(x), torch.full_like(x, math.log(step)))


def test_an_atom_has_its_share_of_the_rows() -> None:
    values = SPIKES["a value in the middle"]
    low, high = fit(values).cell(column(np.array([1.5])))
    assert (stats.norm.cdf(high) - stats.norm.cdf(low)).item() == pytest.approx((values == 1.5).mean(), abs=0.01)


@pytest.mark.parametrize("name", EVERY)
def test_draws_are_distributed_as_the_rows(name: str) -> None:
    values = EVERY[name]
    drawn = fit(values).inverse(torch.randn(20_000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    assert stats.ks_2samp(drawn.numpy()[:, 0], values).statistic < 0.045


@pytest.mark.parametrize("name", EVERY)
def test_anything_comes_back_inside_the_range(name: str) -> None:
    values, maps = EVERY[name], fit(EVERY[name])
    x = maps.inverse(column(np.linspace(-40, 40, 999)))
    assert x.isfinite().all()
    if values.min() >= 0:
        assert x.min() >= 0
    if name == "shares":
        assert x.max() <= 1
    if name == "negative":
        assert x.max() <= 0
    if name in GRIDS:
        assert set(np.unique(x.numpy())) <= set(np.arange(values.min(), values.max() + 1, float(maps.step)).round(6))


def test_a_bounded_column_takes_its_bound_and_beyond() -> None:
    maps = fit(CONTINUOUS["shares"])
    t = maps.forward(column(np.array([-1.0, 0.0, 1.0, 2.0])))
    assert t.isfinite().all()
    assert t[0] == t[1] < t[2] == t[3]


def test_gaussian_columns_are_mapped_by_mean_and_scale() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(3, 2, (500, 40))
    maps = MarginalMaps.fit(x)
    affine = torch.from_numpy((x - x.mean(0)) / x.std(0))
    near = (maps.forward(torch.from_numpy(x)) - affine).abs().amax(0)
    assert (near < 1e-9).float().mean() >= 0.9
    assert near.max() < 0.5


def test_a_positive_gaussian_column_is_affine_where_it_has_been_and_positive_everywhere() -> None:
    x = np.random.default_rng(1).normal(70, 12, 400)
    maps = fit(x)
    affine = column((x - x.mean()) / x.std())
    torch.testing.assert_close(maps.forward(column(x)), affine, rtol=1e-9, atol=1e-9)
    assert (maps.inverse(column(np.linspace(-30, -5, 99))) > 0).all()


def test_columns_are_independent_and_rows_too() -> None:
    x = np.stack(list(EVERY.values()), 1)
    together = MarginalMaps.fit(x)
    t = together.forward(torch.from_numpy(x))
    for k, values in enumerate(EVERY.values()):
        alone = fit(values)
        torch.testing.assert_close(t[:, [k]], alone.forward(column(values)), rtol=1e-12, atol=1e-12)
        for both, one in zip(together.cell(torch.from_numpy(x)), alone.cell(column(values)), strict=True):
            torch.testing.assert_close(both[:, [k]], one, rtol=1e-12, atol=1e-12)
    order = RNG.permutation(N)
    again = MarginalMaps.fit(x[order])
    assert torch.equal(again.forward(torch.from_numpy(x)), t)


def test_units_do_not_matter() -> None:
    for values in (CONTINUOUS[name] for name in CONTINUOUS if name != "shares"):
        moved = fit(values * 1e6)
        torch.testing.assert_close(moved.forward(column(values * 1e6)), fit(values).forward(column(values)))


def test_missing_cells_stay_missing() -> None:
    x = np.stack([CONTINUOUS["gaussian"], SPIKES["zeros and more"], GRIDS["counts"]], 1)
    x[::3, 0] = x[1::3, 1] = x[2::3, 2] = np.nan
    maps, at = MarginalMaps.fit(x), torch.from_numpy(x)
    for result in (maps.forward(at), maps.inverse(at), maps.log_derivative(at), *maps.cell(at)):
        assert torch.equal(result.isnan(), at.isnan())


@pytest.mark.parametrize(
    "values", [[], [7.0], [2.5, 2.5, 2.5], [0.0, 1.0], [1e-300, 2e-300, 5e-300], [-1e15, 3.0, 1e15]]
)
def test_columns_of_few_or_extreme_values(values: list[float]) -> None:
    x = np.array(values)
    maps = fit(x)
    t = maps.forward(column(x))
    assert t.isfinite().all()
    torch.testing.assert_close(maps.inverse(t), column(x), rtol=1e-12, atol=1e-15 * float(np.ptp([0, *x])))


def test_tensors_carry_the_whole_state() -> None:
    x = np.stack(list(EVERY.values()), 1)
    maps = MarginalMaps.fit(x)
    again = MarginalMaps(**maps.tensors())
    assert torch.equal(
        again.inverse(again.forward(torch.from_numpy(x))), maps.inverse(maps.forward(torch.from_numpy(x)))
    )


@pytest.mark.parametrize(
    ("values", "step"), [([0.1, 0.3, 0.7], 0.2), ([5, 10, 25], 5.0), ([1e6, 1e6 + 3], 3.0), ([0, math.pi], 0.0)]
)
def test_grid_step(values: list[float], step: float) -> None:
    assert grid_step(np.array(values, float)) == pytest.approx(step)
