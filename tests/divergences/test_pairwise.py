"""Every fast path of the mean over pairs against the readable formula under torch's own differentiation, in float64."""

import math

import pytest
import torch
from tests.divergences.cases import EXTREMES, leaf, random_posterior

from wiseale import kernels
from wiseale.divergences import tiled
from wiseale.divergences.pairwise import KERNELS, log_mean_pairs, log_mean_readable
from wiseale.divergences.streaming import log_sum_symmetric
from wiseale.divergences.tiled import ConstantColumns
from wiseale.kernels import pairs
from wiseale.posterior import Posterior, SharedRows

compiled = pytest.mark.skipif(not kernels.available(), reason=kernels.state())
both_kernels = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
# M = 1, 2, odd, above a block; d_z from 1 to 64, of which the logarithms' products take 1, 2, 4 and 8 at a time
sizes = pytest.mark.parametrize(
    "size", [(1, 1), (1, 5), (2, 1), (2, 64), (7, 3), (37, 2), (37, 17), (101, 4), (64, 64)]
)


def constant(kernel, m, d):
    return kernel.constant * d - math.log(m)


def mean_in_tiles(q, kernel, **options):
    return tiled.log_sum_pairs(q, kernel.quadratic, kernel.own, **options) + constant(kernel, *q.mu.shape)


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
@pytest.mark.parametrize("apart", [0.0, 1.0, 20.0])  # equal means; overlapping; so far that most pairs have no weight
@pytest.mark.parametrize("keep", [0, 1 << 22])
@pytest.mark.parametrize("tile_rows", [1, 5, 1000])
def test_tiles_in_float64(kernel, size, apart, keep, tile_rows):
    q = random_posterior(*size, spread=apart)
    found = value_and_gradients(lambda q: mean_in_tiles(q, kernel, tile_entries=tile_rows * q.mu.numel(), keep=keep), q)
    expected = value_and_gradients(lambda q: log_mean_readable(q, kernel), q)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@both_kernels
@sizes
@pytest.mark.parametrize("apart", [1.0, 20.0])
def test_tiles_in_float32(kernel, size, apart):
    q = leaf(random_posterior(*size, spread=apart), torch.float32)
    found = value_and_gradients(lambda q: mean_in_tiles(q, kernel, tile_entries=3 * q.mu.numel()), q, torch.float32)
    assert_float32_follows(found, value_and_gradients(lambda q: log_mean_readable(q, kernel), q))


@both_kernels
@pytest.mark.parametrize("case", EXTREMES)
@pytest.mark.parametrize("d", [1, 64])
@pytest.mark.parametrize("readable", [True, False])
def test_float32_at_the_extremes(kernel, case, d, readable):
    q = Posterior(*(torch.tensor(values).repeat(3, d) for values in EXTREMES[case]))
    function = log_mean_readable if readable else mean_in_tiles
    value, *gradients = value_and_gradients(lambda q: function(q, kernel), q, torch.float32)
    exact, *exact_gradients = value_and_gradients(lambda q: log_mean_readable(q, kernel), q)
    torch.testing.assert_close(value.double(), exact, rtol=1e-4, atol=1e-4 + 1e-5 * d)  # d logarithms cancel
    cancelling = 1e-6 / q.sigma.min().item()  # terms of size 1/σ add up to less, for float32 to about 1e-7 of them
    for ours, theirs in zip(gradients, exact_gradients, strict=True):
        tolerance = 1e-4 * (1 + theirs.abs().max().item()) + cancelling
        torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=tolerance)


@both_kernels
@pytest.mark.parametrize("sigma", [1e-9, 1e-12])
def test_slopes_whose_square_overflows_have_no_weight(kernel, sigma):
    """Narrow and far apart in float32: Δ²/v² is infinite, the weight of the pair 0; what remains is the pair (i, i)."""
    mu = torch.linspace(-1e4, 1e4, 5)[:, None].repeat(1, 3)
    value, grad_mu, grad_sigma = value_and_gradients(
        lambda q: mean_in_tiles(q, kernel), Posterior(mu, torch.full_like(mu, sigma)), torch.float32
    )
    assert bool(value.isfinite().all())
    assert bool((grad_mu == 0).all())
    # Alone, k(i, i) = −½ Σ log 2σ² + 2·own·Σ log σ: its derivative is (2·own − 1)/σ.
    slope = (2 * kernel.own - 1) / sigma * upstream(5).float()[:, None].expand(5, 3)
    torch.testing.assert_close(grad_sigma, slope, rtol=1e-5, atol=1e-5 / sigma)


@both_kernels
@pytest.mark.parametrize(("m", "k", "d"), [(1, 1, 1), (1, 40, 3), (5, 12, 64), (11, 40, 2), (8, 300, 5)])
@pytest.mark.parametrize("tile_rows", [1, 3, 1000])
@pytest.mark.parametrize("keep", [0, 1 << 22])
@pytest.mark.parametrize("with_column_part", [True, False])
def test_constant_columns(kernel, m, k, d, tile_rows, keep, with_column_part):
    """A bank: autograd of the readable rows, plus Σ_j exp(k_nj − log_sums_j) for the columns' part of the gradient."""
    bank = random_posterior(k, d, seed=1)
    places = torch.randperm(k, generator=torch.Generator().manual_seed(0))[:m]
    stored = log_mean_readable(bank, kernel) - constant(kernel, k, d) + 0.1  # a little out of date
    columns = ConstantColumns(bank, stored, places) if with_column_part else ConstantColumns(bank)
    rows = leaf(bank[places])
    options = {"tile_entries": tile_rows * k * d, "keep": keep}
    found = tiled.log_sum_pairs(rows, kernel.quadratic, kernel.own, columns, **options)

    exact = leaf(bank[places])
    log_k = kernel.formula(exact, bank) - kernel.constant * d
    log_sums = log_k.logsumexp(1)
    torch.testing.assert_close(found, log_sums, rtol=1e-10, atol=1e-10)
    surrogate = log_sums
    if with_column_part:
        surrogate = surrogate + (log_k - stored.index_copy(0, places, log_sums.detach())).exp().sum(1)
    gradients = torch.autograd.grad(found, (rows.mu, rows.sigma), upstream(m))
    for ours, theirs in zip(
        gradients, torch.autograd.grad(surrogate, (exact.mu, exact.sigma), upstream(m)), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@compiled
@both_kernels
@pytest.mark.parametrize("size", [(16, 1), (48, 3), (64, 16), (112, 17), (256, 64)])
@pytest.mark.parametrize("apart", [1.0, 20.0])
@pytest.mark.parametrize("keep", [0, 1 << 22])
@pytest.mark.parametrize("threads", [1, 2])
def test_compiled_pairs(kernel, size, apart, keep, threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    q = leaf(random_posterior(*size, spread=apart), torch.float32)
    assert pairs.takes(q.mu, q.sigma)

    def in_c(q):
        log_sums = pairs.log_sum_pairs(q.mu, q.sigma, kernel.quadratic, kernel.own, keep=keep)
        return log_sums + constant(kernel, *size)

    found = value_and_gradients(in_c, q, torch.float32)
    assert_float32_follows(found, value_and_gradients(lambda q: log_mean_readable(q, kernel), q))


@both_kernels
@pytest.mark.parametrize("size", [(48, 3), (96, 17)])
@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("keep", [0, 1 << 22])
@pytest.mark.parametrize("path", [pytest.param("compiled", marks=compiled), "tiles"])
def test_ranks_share_the_rows(kernel, size, ranks, keep, path):
    """Ranks one after the other: each finds the sums and the gradient of its own rows, and no other gradient."""
    m, dtype = size[0], torch.float32 if path == "compiled" else torch.float64
    q = leaf(random_posterior(*size), dtype)
    expected = value_and_gradients(lambda q: log_mean_readable(q, kernel), q)
    log_sums = (expected[0] - constant(kernel, *size)).to(dtype)
    tolerance = {"rtol": 2e-6, "atol": 3e-5} if path == "compiled" else {"rtol": 1e-10, "atol": 1e-10}
    summed = [torch.zeros_like(part, dtype=dtype) for part in expected[1:]]
    for rank in range(ranks):
        # parts of unequal sizes, whose ends are in the midst of a vector register
        part = slice(rank * m // ranks + bool(rank), (rank + 1) * m // ranks + (rank + 1 < ranks))
        gathered = []

        def gather(own, part=part, gathered=gathered):
            torch.testing.assert_close(own, log_sums[part], **tolerance)
            gathered.append(own)
            return log_sums.clone()

        def one_rank(q, part=part, gather=gather):
            options = {"shared": SharedRows(part, gather), "keep": keep}
            if path == "compiled":
                return pairs.log_sum_pairs(q.mu, q.sigma, kernel.quadratic, kernel.own, **options)
            return tiled.log_sum_pairs(q, kernel.quadratic, kernel.own, tile_entries=5 * q.mu.numel(), **options)

        _, *gradients = value_and_gradients(one_rank, q, dtype)
        assert len(gathered) == 1
        for total, ours in zip(summed, gradients, strict=True):
            assert not torch.cat((ours[: part.start], ours[part.stop :])).any()
            total += ours
    if path == "compiled":
        assert_float32_follows((log_sums, *summed), (log_sums.double(), *expected[1:]))
    else:
        for total, theirs in zip(summed, expected[1:], strict=True):
            torch.testing.assert_close(total, theirs, **tolerance)


@both_kernels
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (300, 2), (301, 40)])
def test_streamed_pairs(kernel, size):
    q = random_posterior(*size)
    found = log_sum_symmetric(q, kernel.quadratic, kernel.own) + constant(kernel, *size)
    torch.testing.assert_close(found, log_mean_readable(q, kernel), rtol=1e-11, atol=1e-11)


@both_kernels
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("m", "with_gradient"), [(13, True), (64, True), (400, True), (403, True), (1030, False)])
def test_whichever_path_is_chosen(kernel, dtype, m, with_gradient):
    """Sizes for the formula itself, for C (multiples of 16 in float32), for tiles and for streaming."""
    q = leaf(random_posterior(m, 2), dtype)
    with torch.set_grad_enabled(with_gradient):
        found = log_mean_pairs(q, kernel)
    assert found.dtype == dtype
    assert found.requires_grad == with_gradient
    expected = log_mean_readable(leaf(q, torch.float64), kernel)
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
@pytest.mark.parametrize("m", [16, 17, 403])
@pytest.mark.parametrize("parameter", ["mu", "sigma"])
def test_nan_propagates(kernel, m, parameter):
    """Every row meets the broken one, whichever path computes it; in C, in the formula and in tiles."""
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


SECOND = [  # as many rows as the readable formula, C and the tiles take
    pytest.param(15, 2, torch.float32, id="readable"),
    pytest.param(64, 2, torch.float32, id="compiled", marks=compiled),
    pytest.param(100, 8, torch.float64, id="tiles"),
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
    expected = slope_of_slope(lambda q: log_mean_readable(q, kernel), leaf(q))
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


def test_what_has_only_a_first_derivative_says_so():
    """A second one would silently be 0."""
    q = leaf(random_posterior(5, 2))
    bank = ConstantColumns(random_posterior(9, 2))
    found = tiled.log_sum_pairs(q, 0.5, 0.0, bank).sum()
    with pytest.raises(RuntimeError, match="a bank, or a batch shared by processes, can be differentiated once"):
        torch.autograd.grad(found, q.mu, create_graph=True)
