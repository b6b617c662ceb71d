"""The bank against the batch objectives it extends, quadrature, and a plain list of what was seen."""

import math

import numpy as np
import pytest
import torch
from scipy import special
from tests import oracles

from wiseale.divergences import (
    bhattacharyya_distance,
    kl_aggregate_mc,
    kl_aggregate_upper_bound,
    log_mean_bank,
    log_overlap,
)
from wiseale.errors import ConfigError
from wiseale.objectives.posterior_bank import PosteriorBank
from wiseale.posterior import Posterior

ANALYTIC = ("jensen", "bhattacharyya", "tightest")


def posteriors(m, d=2, seed=0, spread=1.0, width=0.4):
    g = torch.Generator().manual_seed(seed)
    mu = spread * torch.randn(m, d, generator=g, dtype=torch.float64)
    return Posterior(mu, width * torch.exp(0.4 * torch.randn(m, d, generator=g, dtype=torch.float64)))


def leaf(q):
    return Posterior(q.mu.clone().requires_grad_(), q.sigma.clone().requires_grad_())


def value_and_gradients(function, q):
    q = leaf(q)
    value = function(q)
    return value.detach(), *torch.autograd.grad(value, (q.mu, q.sigma))


def assert_same(found, expected, tolerance=1e-10):
    for left, right in zip(found, expected, strict=True):
        torch.testing.assert_close(left, right, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("estimator", ANALYTIC)
@pytest.mark.parametrize("m", [2, 16])
def test_a_bank_that_is_the_batch_is_the_batch_objective(estimator, m):
    q = posteriors(m)
    expected = value_and_gradients(lambda q: kl_aggregate_upper_bound(q, estimator), q)
    exact_fit = PosteriorBank(m, 2, estimator).double()
    for _ in range(2):  # empty, then full of the same entries
        assert_same(value_and_gradients(lambda q: exact_fit(q, q.mu), q), expected)
    roomy = PosteriorBank(3 * m, 2, estimator).double()
    for _ in range(3):  # copies of a batch change neither its mixture nor its gradient
        assert_same(value_and_gradients(lambda q: roomy(q, q.mu), q), expected)


@pytest.mark.parametrize("estimator", ANALYTIC)
def test_a_bank_that_is_the_dataset_has_the_datasets_value_and_gradient(estimator):
    """Batches of 8 against 96 entries: once every level is fresh, the parts put together are the whole, exactly."""
    data = posteriors(96, seed=3)
    bank = PosteriorBank(96, 2, estimator).double()
    for _ in range(3):
        parts = [value_and_gradients(lambda q: bank(q, q.mu), data[8 * i : 8 * i + 8]) for i in range(12)]
    value = torch.stack([part[0] for part in parts]).mean()
    gradients = [torch.cat([part[k] for part in parts]) / 12 for k in (1, 2)]
    expected = value_and_gradients(lambda q: kl_aggregate_upper_bound(q, estimator), data)
    assert_same((value, *gradients), expected, 1e-9)


@pytest.mark.parametrize("estimator", ["jensen", "bhattacharyya", "mc"])
def test_a_larger_bank_comes_closer_to_the_dataset(estimator):
    data = posteriors(2048, d=3, seed=5, width=0.2)
    z = data.sample(torch.randn(2048, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    whole = kl_aggregate_mc(data, z=z) if estimator == "mc" else kl_aggregate_upper_bound(data, estimator)
    errors = []
    for size in (32, 256, 1024):
        bank = PosteriorBank(size, 3, estimator)
        values = [bank(data[i : i + 32], z[i : i + 32]) for i in range(0, 2048, 32)]
        errors.append(float(torch.stack(values[32:]).mean() - whole))
    assert errors[0] > 2 * errors[1] > 4 * errors[2] > 0


def test_the_path_gradient_is_the_gradient_of_the_exact_divergence_in_expectation():
    """Against differences of the quadrature; many copies of three posteriors share one call, each with its own draw."""
    mu, sigma = np.array([-1.0, 0.2, 0.7]), np.array([0.5, 0.3, 0.9])
    step = 1e-4
    expected = []
    for k in range(6):
        shift = step * np.eye(6)[k].reshape(2, 3)
        above, below = (oracles.aggregate_kl_by_quadrature(mu + s * shift[0], sigma + s * shift[1]) for s in (1, -1))
        expected.append((above - below) / (2 * step))
    copies, g = 150, torch.Generator().manual_seed(4)
    found = []
    for _ in range(60):
        q = Posterior(*(torch.tensor(v)[:, None].requires_grad_() for v in (mu, sigma)))
        many = Posterior(q.mu.repeat(copies, 1), q.sigma.repeat(copies, 1))
        z = many.sample(torch.randn(many.mu.shape, generator=g, dtype=torch.float64))
        value = PosteriorBank(3 * copies, 1, "mc").double()(many, z)
        found.append(torch.cat(torch.autograd.grad(value, (q.mu, q.sigma))).flatten())
    found = torch.stack(found)
    error = found.std(0) / math.sqrt(len(found))
    assert bool(((found.mean(0) - torch.tensor(expected)).abs() < 4 * error).all())
    assert float(error.max()) < 0.02  # small against the gradients themselves
    assert float(torch.tensor(expected).abs().max()) > 0.2


def test_monte_carlo_value_is_the_batchs_own_where_the_bank_is_the_batch():
    q = posteriors(7)
    z = q.sample(torch.randn(7, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    torch.testing.assert_close(PosteriorBank(50, 2, "mc").double()(q, z), kl_aggregate_mc(q, z=z))


def test_it_holds_the_newest_and_their_levels_as_they_entered():
    """Batches of 5 into 12 places, beside a plain list."""
    bank = PosteriorBank(12, 2, "jensen").double()
    held = []
    for step in range(7):
        q = posteriors(5, seed=step)
        bank(q, q.mu)
        held = (held + [(q.mu[i], q.sigma[i], step) for i in range(5)])[-12:]
        everyone = Posterior(torch.stack([h[0] for h in held]), torch.stack([h[1] for h in held]))
        kernel = log_overlap(q, everyone).numpy()
        levels = special.logsumexp(kernel, axis=1) - np.log(len(held))
        here = [int((bank.mu == row).all(1).nonzero()) for row in q.mu]
        np.testing.assert_allclose(bank.level[0, here].numpy(), levels, rtol=1e-12)
    count = min(12, int(bank.seen))
    assert int(bank.seen) == 35
    stored = sorted(bank.mu[:count, 0].tolist())
    assert stored == sorted(float(h[0][0]) for h in held)


@pytest.mark.parametrize("estimator", [*ANALYTIC, "mc"])
@pytest.mark.parametrize("before", [0, 2, 9])
def test_evaluation_leaves_the_bank_alone_and_measures_as_training_would(estimator, before):
    bank = PosteriorBank(20, 2, estimator)
    for step in range(before):
        q = posteriors(4, seed=step)
        bank(q, q.mu)
    state = {name: tensor.clone() for name, tensor in bank.state_dict().items()}
    held_out = posteriors(4, seed=99)
    bank.eval()
    first, second = bank(held_out, held_out.mu), bank(held_out, held_out.mu)
    assert all(torch.equal(bank.state_dict()[name], tensor) for name, tensor in state.items())
    assert torch.equal(first, second)
    assert torch.equal(bank.train()(held_out, held_out.mu), first)
    assert int(bank.seen) == 4 * before + 4


@pytest.mark.parametrize(("estimator", "kernel"), [("jensen", log_overlap), ("bhattacharyya", bhattacharyya_distance)])
def test_the_mean_overlap_is_the_one_of_the_batch_bounds(estimator, kernel):
    bank, sign = posteriors(9, d=3, seed=1), 1 if estimator == "jensen" else -1
    batch, places = bank[4:7], torch.arange(4, 7)
    expected = special.logsumexp(sign * kernel(batch, bank).numpy(), axis=1) - np.log(9)
    found = log_mean_bank(batch, bank, places, torch.zeros(9, dtype=torch.float64), estimator)
    np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=1e-12)


def test_the_graph_keeps_no_pairs_times_dimensions():
    """Of 20 × 500 pairs in 7 dimensions, at most one number for each pair is kept for the backward pass."""
    kept = []

    def pack(tensor):
        kept.append(tensor.numel())
        return tensor

    for estimator in (*ANALYTIC, "mc"):
        bank = PosteriorBank(500, 7, estimator).double()
        for step in range(25):
            q = leaf(posteriors(20, d=7, seed=step))
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                bank(q, q.mu + 0.5 * q.sigma)
    assert max(kept) == 20 * 500


@pytest.mark.parametrize("estimator", [*ANALYTIC, "mc"])
@pytest.mark.parametrize("d", [1, 64])
@pytest.mark.parametrize(
    ("spread", "width"), [(1.0, 1e-4), (1.0, 1e3), (1e4, 1e-3), (1e4, 1e-9), (0.0, 1.0), (1e-3, 1e-6)]
)
def test_float32_stays_finite(estimator, d, spread, width):
    bank = PosteriorBank(12, d, estimator)
    for step in range(4):
        narrow = posteriors(5, d, seed=step, spread=spread, width=width if step % 2 else 0.3)
        value, *gradients = value_and_gradients(
            lambda q: bank(q, q.mu + q.sigma), Posterior(narrow.mu.float(), narrow.sigma.float())
        )
        assert value.dtype == torch.float32
        assert all(bool(tensor.isfinite().all()) for tensor in (value, *gradients))


def test_a_batch_must_fit():
    q = posteriors(5)
    with pytest.raises(ConfigError, match="bank_size must be at least the batch size, got 4 for batches of 5"):
        PosteriorBank(4, 2, "mc")(q, q.mu)
