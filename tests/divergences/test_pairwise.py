"""Every fast path of the mean over pairs against the readable formula under torch's own differentiation, in float64."""

import math

import pytest
import torch
from tests.divergences.cases import EXTREMES, leaf, random_posterior

from wiseale import kernels
from wiseale.divergences import pairwise
from wiseale.divergences.pairwise import KERNELS, log_mean_pairs, log_mean_rows
from wiseale.divergences.streaming import log_sum_symmetric
from wiseale.kernels import pairs
from wiseale.posterior import Posterior

compiled = pytest.mark.skipif(not kernels.available(), reason=kernels.state())
both_kernels = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
# M = 1, 2, odd, above a block; d_z from 1 to 64, of which the logarithms' products take 1, 2, 4 and 8 at a time
sizes = pytest.mark.parametrize(
    "size", [(1, 1), (1, 5), (2, 1), (2, 64), (7, 3), (37, 2), (37, 17), (101, 4), (64, 64)]
)


def unreachable(mu, sigma):
    raise AssertionError("the formula is for second derivatives alone")


def constant(kernel, m, d):
    return kernel.constant * d - math.log(m)


def readable(q, kernel):
    """The formula at once, under torch's own differentiation."""
    return kernel.formula(q, q).logsumexp(1) - math.log(len(q))


def in_blocks_of(rows, q, kernel):
    """The formula in blocks of so many rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairwise, "BLOCK_ENTRIES", rows * q.mu.numel())
        return log_mean_rows(q, kernel.formula)


def upstream(m):
    """Weights of either sign for the rows, so that no row's gradient hides behind another's."""
    return torch.linspace(-1, 2, m, dtype=torch.float64)


def value_and_gradients(function, q, dtype=torch.float64):
    q = leaf(q, dtype)
    rows = function(q)
    return rows.detach(), *torch.autograd.grad(rows, (q.mu, q.sigma), upstream(len(q)).to(dtype))


def assert_float32_follows(found, expected):
    """Rounding of sums of d_z terms in the value; gradients relative to the largest of them."""
    value, *gradients = found
    torch.testing.assert_close(value.double(), expected[0], rtol=2e-6, atol=3e-5)
    for ours, theirs in zip(gradients, expected[1:], strict=True):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=1e-5 * (1 + theirs.abs().max().item()))


@both_kernels
@sizes
@pytest.mark.parametrize("apart", [0.0, 20.0])  # equal means; so far that most pairs have no weight
@pytest.mark.parametrize("rows", [1, 5, 1000])
def test_blocks(kernel, size, apart, rows):
    q = random_posterior(*size, spread=apart)
    blocks = value_and_gradients(lambda q: in_blocks_of(rows, q, kernel), q)
    for ours, theirs in zip(blocks, value_and_gradients(lambda q: readable(q, kernel), q), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@both_kernels
@pytest.mark.parametrize("case", EXTREMES)
@pytest.mark.parametrize("d", [1, 64])
def test_float32_at_the_extremes(kernel, case, d):
    q = Posterior(*(torch.tensor(values).repeat(3, d) for values in EXTREMES[case]))
    value, *gradients = value_and_gradients(lambda q: readable(q, kernel), q, torch.float32)
    exact, *exact_gradients = value_and_gradients(lambda q: readable(q, kernel), q)
    torch.testing.assert_close(value.double(), exact, rtol=1e-4, atol=1e-4 + 1e-5 * d)  # d logarithms cancel
    cancelling = 1e-6 / q.sigma.min().item()  # terms of size 1/σ add up to less, for float32 to about 1e-7 of them
    for ours, theirs in zip(gradients, exact_gradients, strict=True):
        tolerance = 1e-4 * (1 + theirs.abs().max().item()) + cancelling
        torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=tolerance)


@compiled
@both_kernels
# the last vector register full, or with 1, 5 and 15 numbers in it
@pytest.mark.parametrize("size", [(1, 1), (16, 1), (21, 64), (48, 3), (64, 16), (111, 17), (256, 64)])
@pytest.mark.parametrize("apart", [1.0, 20.0])
@pytest.mark.parametrize("keep", [0, 1 << 22])
@pytest.mark.parametrize("threads", [1, 2])
def test_compiled_pairs(kernel, size, apart, keep, threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    q = leaf(random_posterior(*size, spread=apart), torch.float32)
    assert pairs.takes(q.mu, q.sigma)

    def in_c(q):
        coefficients = kernel.quadratic, kernel.own, constant(kernel, *size)
        return pairs.log_sum_pairs(q.mu, q.sigma, *coefficients, formula=unreachable, keep=keep)

    found = value_and_gradients(in_c, q, torch.float32)
    assert_float32_follows(found, value_and_gradients(lambda q: readable(q, kernel), q))


@both_kernels
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (300, 2), (301, 40)])
def test_streamed_pairs(kernel, size):
    q = random_posterior(*size)
    found = log_sum_symmetric(q, kernel.quadratic, kernel.own) + constant(kernel, *size)
    torch.testing.assert_close(found, readable(q, kernel), rtol=1e-11, atol=1e-11)


@both_kernels
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("m", "with_gradient"), [(13, True), (64, True), (400, True), (803, True), (1030, False)])
def test_whichever_path_is_chosen(kernel, dtype, m, with_gradient):
    """In float32 C up to a thousand rows, in float64 one block of the formula and several, and streaming."""
    q = leaf(random_posterior(m, 2), dtype)
    with torch.set_grad_enabled(with_gradient):
        found = log_mean_pairs(q, kernel)
    assert found.dtype == dtype
    assert found.requires_grad == with_gradient
    expected = readable(leaf(q, torch.float64), kernel)
    tolerance = 1e-10 if dtype == torch.float64 else 1e-5
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)


@compiled
@pytest.mark.parametrize("sigma", [1e-20, 1e20, math.nan, math.inf])
def test_widths_that_float32_cannot_square_are_left_to_torch(sigma):
    width = torch.ones(16, 2)
    width[3, 1] = sigma
    q = Posterior(torch.zeros(16, 2, requires_grad=True), width.requires_grad_())
    assert not pairs.takes(q.mu, q.sigma)


@both_kernels
@pytest.mark.parametrize("m", [16, 17, 200])
@pytest.mark.parametrize("parameter", ["mu", "sigma"])
def test_nan_propagates(kernel, m, parameter):
    """Every row meets the broken one, whichever path computes it; in C and in the formula."""
    q = {"mu": torch.zeros(m, 2), "sigma": torch.ones(m, 2)}
    q[parameter][3, 1] = math.nan
    q = leaf(Posterior(**q))
    rows = log_mean_pairs(q, kernel)
    assert rows.isnan().all()
    assert torch.autograd.grad(rows.mean(), q.mu)[0].isnan().any()


@compiled
def test_types_that_differ_are_left_to_torch():
    q = Posterior(torch.zeros(16, 2), torch.ones(16, 2, dtype=torch.float64).requires_grad_())
    assert not pairs.takes(q.mu, q.sigma)


SECOND = [  # as many rows as one block of the formula, C and several blocks take
    pytest.param(15, 2, torch.float64, id="readable"),
    pytest.param(64, 2, torch.float32, id="compiled", marks=compiled),
    pytest.param(430, 6, torch.float64, id="blocks"),
]


@both_kernels
@pytest.mark.parametrize(("m", "d", "dtype"), SECOND)
def test_second_derivatives(kernel, m, d, dtype):
    """The gradient of a gradient's norm, as penalties on slopes and second-order optimisers take it."""

    def slope_of_slope(function, q):
        gradients = torch.autograd.grad(function(q).mean(), (q.mu, q.sigma), create_graph=True)
        return torch.autograd.grad(sum(one.square().sum() for one in gradients), (q.mu, q.sigma))

    q = random_posterior(m, d)
    found = slope_of_slope(lambda q: log_mean_pairs(q, kernel), leaf(q, dtype))
    expected = slope_of_slope(lambda q: readable(q, kernel), leaf(q))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=1e-5 * theirs.abs().max().item())


@pytest.mark.parametrize(("m", "d", "dtype"), SECOND)
def test_transforms_of_functions(m, d, dtype):
    """torch.func.grad and vmap see the formula."""
    q = random_posterior(m, d)
    mu, sigma = q.mu.to(dtype), q.sigma.to(dtype)

    def bound(mu, sigma):
        return log_mean_pairs(Posterior(mu, sigma), KERNELS["jensen"]).mean()

    by_mu = torch.func.grad(bound)(mu, sigma)
    leaf_mu = mu.clone().requires_grad_()
    torch.testing.assert_close(by_mu, torch.autograd.grad(bound(leaf_mu, sigma), leaf_mu)[0], rtol=1e-4, atol=1e-6)
    several = torch.func.vmap(bound)(torch.stack((mu, 2 * mu)), torch.stack((sigma, sigma)))
    torch.testing.assert_close(several, torch.stack((bound(mu, sigma), bound(2 * mu, sigma))), rtol=1e-5, atol=1e-6)


@compiled
@both_kernels
def test_pairs_count_down_to_the_square_of_float32s_rounding(kernel):
    """Two clusters so far apart that a pair between them weighs 1e-9 of one within: the whole gradient of mu."""
    apart = 2 * math.sqrt(math.log(1e9) / (2 * kernel.quadratic))
    mu = torch.zeros(64, 1)
    mu[32:] = apart
    q = Posterior(mu, torch.ones(64, 1))
    float32, exact = (
        value_and_gradients(lambda q: log_mean_pairs(q, kernel), q, t) for t in (torch.float32, torch.float64)
    )
    assert 1e-11 < exact[1].abs().min() < exact[1].abs().max() < 1e-6
    torch.testing.assert_close(float32[1].double(), exact[1], rtol=1e-3, atol=0)


@both_kernels
def test_widths_beyond_float64_are_left_to_the_formula(kernel):
    """Products of 4 variances of e^±240 are no float64; the readable formula adds logarithms."""
    sigma = torch.tensor([[-120.0], [0.0], [120.0]], dtype=torch.float64).expand(3, 4).exp()
    q = Posterior(torch.zeros(3, 4, dtype=torch.float64), sigma)
    assert bool(readable(q, kernel).isfinite().all())
    assert log_sum_symmetric(q, kernel.quadratic, kernel.own) is None
    narrow = Posterior(q.mu, sigma ** (1 / 2))
    found = log_sum_symmetric(narrow, kernel.quadratic, kernel.own) + constant(kernel, 3, 4)
    torch.testing.assert_close(found, readable(narrow, kernel), rtol=1e-9, atol=1e-9)


@compiled
@pytest.mark.parametrize(("sigma", "taken"), [(2e-15, True), (5e-16, False), (5e14, True), (2e15, False)])
def test_widths_whose_square_is_no_normal_float32_are_not_for_the_kernels(sigma, taken):
    assert pairs.takes(torch.zeros(4, 2), torch.tensor([[1.0, sigma]]).expand(4, 2)) == taken
