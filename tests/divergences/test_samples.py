"""Sample distances against direct sums, other libraries and closed forms of optimal transport."""

import math

import numpy as np
import pytest
import torch
from scipy import optimize, stats

from wiseale.divergences.samples import (
    imq_kernel,
    sinkhorn_cost,
    sinkhorn_divergence,
    squared_distances,
    squared_mmd,
)

DISTANCES = {
    "mmd": squared_mmd,
    "divergence": sinkhorn_divergence,
    "cost": sinkhorn_cost,
}


def draws(m, d, seed=0, shift=0.0, scale=1.0, dtype=torch.float64):
    g = torch.Generator().manual_seed(seed)
    return (shift + scale * torch.randn(m, d, generator=g, dtype=torch.float64)).to(dtype)


def double_sum_mmd(x, y):
    """The definition, pair by pair, in plain Python."""

    def k(a, b):
        square = sum((p - q) ** 2 for p, q in zip(a, b, strict=True))
        return sum((c := 2 * len(a) * s) / (c + square) for s in (0.1, 0.2, 0.5, 1, 2, 5, 10))

    x, y = x.tolist(), y.tolist()
    within = [
        sum(k(a, b) for i, a in enumerate(points) for j, b in enumerate(points) if i != j)
        / (len(points) * (len(points) - 1))
        for points in (x, y)
    ]
    return sum(within) - 2 * sum(k(a, b) for a in x for b in y) / (len(x) * len(y))


@pytest.mark.parametrize(("m", "n", "d"), [(2, 2, 1), (7, 7, 3), (5, 9, 2)])
def test_mmd_is_the_double_sum(m, n, d):
    x, y = draws(m, d, 1, shift=0.5), draws(n, d, 2)
    assert float(squared_mmd(x, y)) == pytest.approx(double_sum_mmd(x, y), rel=1e-12)


def test_mmd_averages_to_zero_where_both_samples_follow_one_distribution():
    g = torch.Generator().manual_seed(0)
    values = torch.stack([squared_mmd(*torch.randn(2, 16, 3, generator=g, dtype=torch.float64)) for _ in range(1500)])
    error = float(values.std()) / math.sqrt(len(values))
    assert abs(float(values.mean())) < 4 * error
    assert float(values.min()) < 0  # unbiased, so it must go below
    moved = torch.stack(
        [squared_mmd(*(torch.randn(2, 16, 3, generator=g) + torch.tensor([[[0.5]], [[0.0]]]))) for _ in range(300)]
    )
    assert float(moved.mean()) > 10 * error


def test_mmd_of_one_point_leaves_its_own_term_out():
    x, y = draws(1, 2), draws(5, 2, 1)
    among, across = imq_kernel(y, y).numpy(), imq_kernel(x, y).numpy()
    expected = among[~np.eye(5, dtype=bool)].mean() - 2 * across.mean()
    assert float(squared_mmd(x, y)) == pytest.approx(expected)


def geomloss_divergence(x, y, epsilon):
    geomloss = pytest.importorskip("geomloss", reason="geomloss is not installed: nothing to compare with")
    # their cost is ½‖x − y‖² and their temperature blur²: twice their value at blur² = ε/2 is ours
    loss = geomloss.SamplesLoss("sinkhorn", p=2, blur=math.sqrt(epsilon / 2), scaling=0.99, backend="tensorized")
    return 2 * loss(x, y)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 10.0])
def test_divergence_agrees_with_geomloss_in_value_and_gradient(epsilon):
    x, y = draws(20, 3, 1, shift=0.7, scale=0.5), draws(20, 3, 2)
    values, gradients = [], []
    for distance in (
        lambda a, b: sinkhorn_divergence(a, b, epsilon, 3000),
        lambda a, b: geomloss_divergence(a, b, epsilon),
    ):
        leaves = x.clone().requires_grad_(), y.clone().requires_grad_()
        value = distance(*leaves)
        values.append(value.detach())
        gradients.append(torch.cat(torch.autograd.grad(value, leaves)))
    torch.testing.assert_close(values[0], values[1], rtol=1e-3, atol=1e-4)
    assert float((gradients[0] - gradients[1]).norm() / gradients[1].norm()) < 2e-2


def sharp_and_entropic_value_by_pot(x, y, epsilon):
    ot = pytest.importorskip("ot", reason="POT is not installed: nothing to compare with")
    x, y = x.numpy(), y.numpy()
    weights = np.full(len(x), 1 / len(x))
    cost = ((x[:, None] - y[None]) ** 2).sum(-1)
    plan = ot.sinkhorn(weights, weights, cost, epsilon, method="sinkhorn_log", numItermax=5000, stopThr=1e-7)
    sharp = (plan * cost).sum()
    return sharp, sharp + epsilon * stats.entropy(plan.ravel(), np.outer(weights, weights).ravel())


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_divergence_and_cost_agree_with_pot(epsilon):
    x, y = draws(15, 2, 3, shift=0.5, scale=0.7), draws(15, 2, 4)
    sharp, across = sharp_and_entropic_value_by_pot(x, y, epsilon)
    within = sum(sharp_and_entropic_value_by_pot(points, points, epsilon)[1] for points in (x, y))
    assert float(sinkhorn_divergence(x, y, epsilon, 1000)) == pytest.approx(across - within / 2, rel=1e-5)
    assert float(sinkhorn_cost(x, y, epsilon, 1000)) == pytest.approx(sharp, rel=1e-5)


@pytest.mark.parametrize("distance", [sinkhorn_divergence, sinkhorn_cost])
def test_small_epsilon_in_one_dimension_is_the_sorted_cost(distance):
    x, y = draws(12, 1, 5, shift=2.0, scale=0.5), draws(12, 1, 6)
    expected = (x.sort(0).values - y.sort(0).values).square().mean()
    assert float(distance(x, y, 1e-3, 4000)) == pytest.approx(float(expected), rel=2e-3)


@pytest.mark.parametrize("distance", [sinkhorn_divergence, sinkhorn_cost])
def test_small_epsilon_in_four_dimensions_is_the_best_assignment(distance):
    x, y = draws(10, 4, 7, shift=0.3), draws(10, 4, 8)
    cost = squared_distances(x, y).numpy()
    expected = cost[optimize.linear_sum_assignment(cost)].mean()
    assert float(distance(x, y, 5e-3, 4000)) == pytest.approx(expected, rel=2e-3)


def normal_quantiles(mean, sd, m=200):
    return torch.tensor(stats.norm.ppf((np.arange(m) + 0.5) / m, mean, sd))[:, None]


def test_small_epsilon_between_gaussians_is_their_wasserstein_distance():
    x, y = normal_quantiles(1.5, 0.4), normal_quantiles(0.0, 1.0)
    assert float(sinkhorn_divergence(x, y, 0.01, 300)) == pytest.approx(1.5**2 + 0.6**2, rel=1e-2)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_divergence_between_gaussians_is_the_closed_form_at_any_epsilon(epsilon):
    """Janati et al. 2020, theorem 1, in one dimension; 2·s = ε."""

    def entropic(a, b):  # of variances a and b; constants that cancel are left out
        s = epsilon / 2
        d = math.sqrt(4 * a * b + s**2)
        return a + b - d + s * math.log(d + s)

    a, b = 0.6**2, 1.0
    expected = 0.8**2 + entropic(a, b) - entropic(a, a) / 2 - entropic(b, b) / 2
    x, y = normal_quantiles(0.8, 0.6), normal_quantiles(0.0, 1.0)
    assert float(sinkhorn_divergence(x, y, epsilon, 200)) == pytest.approx(expected, rel=5e-3)


def test_large_epsilon_is_the_squared_distance_of_the_means():
    x, y = draws(9, 3, 1, shift=1.0), draws(9, 3, 2)
    expected = float((x.mean(0) - y.mean(0)).square().sum())
    assert float(sinkhorn_divergence(x, y, 1e5)) == pytest.approx(expected, rel=1e-3)


def test_divergence_vanishes_at_equality_where_the_sharp_cost_does_not():
    x = draws(16, 3)
    assert float(sinkhorn_divergence(x, x.flip(0), 1.0, 500)) == pytest.approx(0, abs=1e-6)
    assert float(sinkhorn_cost(x, x, 1.0, 500)) > 0.1


def test_plan_of_the_sharp_cost_is_doubly_stochastic():
    """A constant added to the cost, by one more coordinate that differs by 1 throughout, is paid exactly once."""
    x, y = draws(8, 2, 1), draws(8, 2, 2)
    lifted = sinkhorn_cost(torch.cat((x, torch.ones(8, 1)), 1), torch.cat((y, torch.zeros(8, 1)), 1), 0.5)
    torch.testing.assert_close(lifted, sinkhorn_cost(x, y, 0.5) + 1)


@pytest.mark.parametrize("name", DISTANCES)
def test_order_and_rigid_motion_change_nothing(name):
    function = DISTANCES[name]
    x, y = draws(9, 3, 1, shift=0.4), draws(9, 3, 2)
    value = function(x, y)
    order = torch.tensor([4, 8, 0, 5, 2, 7, 1, 3, 6])
    torch.testing.assert_close(function(x[order], y), value)
    torch.testing.assert_close(function(x, y[order]), value)
    rotation = torch.linalg.qr(draws(3, 3, 5)).Q
    torch.testing.assert_close(function(x @ rotation + 2, y @ rotation + 2), value)


@pytest.mark.parametrize("name", ["mmd", "divergence"])
def test_symmetry(name):
    x, y = draws(9, 3, 1, shift=0.4), draws(9, 3, 2)
    long = (1.0, 2000) if name == "divergence" else ()
    torch.testing.assert_close(DISTANCES[name](x, y, *long), DISTANCES[name](y, x, *long))


GRADCHECKED = {
    "mmd": squared_mmd,
    "cost": sinkhorn_cost,
    "divergence, converged": lambda x, y: sinkhorn_divergence(x, y, 1.0, 150),
}


@pytest.mark.parametrize("name", GRADCHECKED)
@pytest.mark.parametrize("m", [2, 5])
def test_gradcheck(name, m):
    x, y = (draws(m, 2, seed, shift=0.3 * seed).requires_grad_() for seed in (1, 2))
    assert torch.autograd.gradcheck(GRADCHECKED[name], (x, y))


@pytest.mark.parametrize("name", DISTANCES)
def test_gradient_at_coincident_points_is_finite_and_that_of_the_smooth_function(name):
    point = torch.zeros(4, 2, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(DISTANCES[name](point, draws(4, 2)), point)
    torch.testing.assert_close(gradient, gradient[:1].expand(4, 2))
    assert bool(gradient.isfinite().all())


@pytest.mark.parametrize("d", [2, 8])
def test_divergence_at_its_defaults_is_close_to_converged(d):
    """50 iterations at ε = 0.1: the gradient follows the envelope theorem, so it carries the potentials' error."""
    x, y = draws(64, d, 1, shift=0.1, scale=0.9).requires_grad_(), draws(64, d, 2)
    found, converged = sinkhorn_divergence(x, y), sinkhorn_divergence(x, y, 0.1, 3000)
    torch.testing.assert_close(found, converged, rtol=1e-3, atol=0)
    gradients = [torch.autograd.grad(value, x)[0].flatten() for value in (found, converged)]
    assert float(torch.cosine_similarity(*gradients, dim=0)) > 0.99


def test_envelope_gradient_against_finite_differences_of_the_converged_value():
    x, y = draws(12, 3, 1, shift=0.5, scale=0.6), draws(12, 3, 2)
    direction = draws(12, 3, 3)

    def value(step):
        return float(sinkhorn_divergence(x + step * direction, y, 0.5, 1000))

    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(sinkhorn_divergence(leaf, y, 0.5, 1000), leaf)
    slope = (value(1e-4) - value(-1e-4)) / 2e-4
    assert float((gradient * direction).sum()) == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (0.0, 1e-6), (1e3, 1.0), (0.0, 1e3)])
@pytest.mark.parametrize("m", [1, 2, 64])
def test_float32_follows_float64(name, shift, scale, m):
    x, y = draws(m, 8, 1, shift, scale), draws(m, 8, 2)
    leaf = x.float().requires_grad_()
    value = DISTANCES[name](leaf, y.float())
    exact = float(DISTANCES[name](x.float().double(), y.float().double()))
    assert value.item() == pytest.approx(exact, abs=1e-4 * (1 + abs(exact)))
    value.backward()
    assert bool(leaf.grad.isfinite().all())


@pytest.mark.parametrize("distance", [sinkhorn_divergence, sinkhorn_cost])
def test_samples_of_two_sizes_are_refused(distance):
    with pytest.raises(ValueError, match=r"\(M, d_z\), got \(3, 2\) and \(4, 2\)"):
        distance(torch.zeros(3, 2), torch.zeros(4, 2))
