"""Contours against closed forms: Gaussians whose regions of highest density are known ellipses."""

import numpy as np
import pytest

from wiseale.explorer.contours import RADII, SHARES, Plane, density_contours

UNITS = Plane.of_units(0, 2, 3)
TURNED = Plane(np.array([[0.6, 0.0, 0.8], [-0.8, 0.0, 0.6]]))


def test_the_shares_are_those_of_a_normal_distribution_inside_its_circles():
    draws = np.random.default_rng(0).normal(size=(200_000, 2))
    radius = np.hypot(*draws.T)
    assert np.allclose(SHARES, [(radius < r).mean() for r in RADII], atol=0.005)


@pytest.mark.parametrize("plane", [UNITS, TURNED])
def test_an_aggregate_equal_to_the_prior_has_its_circles(plane):
    mu = np.zeros((40, 3), np.float32)
    sigma = np.ones((40, 3), np.float32)
    for radius, (line,) in zip(RADII, density_contours(plane, mu, sigma), strict=True):
        assert np.allclose(np.hypot(*line.T), radius, rtol=0.04)


def test_posteriors_along_the_units_have_ellipses():
    mu = np.tile(np.array([[1.0, 5.0, -1.0]], np.float32), (30, 1))
    sigma = np.tile(np.array([[0.5, 9.0, 1.5]], np.float32), (30, 1))
    for radius, (line,) in zip(RADII[:2], density_contours(UNITS, mu, sigma)[:2], strict=True):
        assert np.allclose(np.hypot((line[:, 0] - 1) / 0.5, (line[:, 1] + 1) / 1.5), radius, rtol=0.06)


def test_turned_posteriors_have_turned_ellipses():
    mu = np.zeros((30, 3), np.float32)
    sigma = np.tile(np.array([[0.6, 9.0, 1.4]], np.float32), (30, 1))
    covariance = TURNED.directions @ np.diag([0.36, 81, 1.96]) @ TURNED.directions.T
    for radius, (line,) in zip(RADII[:2], density_contours(TURNED, mu, sigma)[:2], strict=True):
        distance = np.sqrt(np.einsum("ni,ij,nj->n", line, np.linalg.inv(covariance), line))
        assert np.allclose(distance, radius, rtol=0.06)


def test_two_separate_groups_have_two_lines():
    mu = np.repeat(np.array([[-3, 0, 0], [3, 0, 0]], np.float32), 20, axis=0)
    sigma = np.full((40, 3), 0.4, np.float32)
    inner, _, _ = density_contours(UNITS, mu, sigma)
    assert sorted(round(float(line[:, 0].mean())) for line in inner) == [-3, 3]


def test_draws_without_a_width_are_smoothed():
    draws = np.random.default_rng(0).normal(size=(20_000, 3)).astype(np.float32)
    for radius, (line, *_) in zip(RADII[:2], density_contours(UNITS, draws, None)[:2], strict=True):
        assert np.hypot(*line.T).mean() == pytest.approx(radius, rel=0.06)


@pytest.mark.parametrize("plane", [UNITS, TURNED])
def test_lines_around_rare_and_wide_posteriors_are_closed(plane):
    """A few posteriors far from the others and much wider than most: the outermost line goes around them."""
    rng = np.random.default_rng(0)
    mu = rng.normal(size=(1000, 3)).astype(np.float32)
    sigma = np.full((1000, 3), 0.05, np.float32)
    mu[:12, 0], sigma[:12] = 4.5, 0.5
    for lines in density_contours(plane, mu, sigma):
        for line in lines:
            np.testing.assert_array_equal(line[0], line[-1])
